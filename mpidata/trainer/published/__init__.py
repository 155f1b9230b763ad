"""Arrays that a trainer publishes for solvers."""
