"""What a trainer publishes for solvers to read."""
