"""The debugger rules of smdbg: one module for each rule."""
