"""What a stream of solvers adds: which samples each step was made with, and how spares join."""
