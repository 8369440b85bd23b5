"""The 21 debugger rules of smdbg."""
