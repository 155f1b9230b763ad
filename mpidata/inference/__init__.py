"""The inference ranks of a job, which run a user's function on the rows that solvers send."""
