"""The inference ranks of a job: they run a function of the user's on the rows that solvers send."""
