"""What is wrong with a job file beyond one section: what sections say about one another, and about other files."""

from mpidata.config.checks.sections import check

__all__ = ["check"]
