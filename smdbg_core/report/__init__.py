"""The report object and its renderings."""
