"""smdbg."""
