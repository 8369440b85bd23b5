"""The profiler rules of smdbg."""
