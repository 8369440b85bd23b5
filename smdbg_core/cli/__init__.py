"""The `smdbg` command: one file per subcommand."""
