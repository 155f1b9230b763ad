"""Elastic training on a stream of solvers: which samples each step used, and how spares join."""
