"""The statistics kernel that all rules share."""
