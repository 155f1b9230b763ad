"""The ranks that answer solvers, for the scheduler."""
