"""Training: what to run (spec), the compiled update loop, checkpoints, one run of many members."""
