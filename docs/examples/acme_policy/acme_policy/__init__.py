"""Policy around smdbg, a module for each: production, audit, patience, metrics."""
