"""Plan, scan, judge: from a run and a set of rules to outcomes."""
