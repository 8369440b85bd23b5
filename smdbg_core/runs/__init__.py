"""What a rule sees: trials, profiler output, and the views over them."""
