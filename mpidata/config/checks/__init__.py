"""Checks of a job file beyond one section: of sections against one another, and against other files."""

from mpidata.config.checks.sections import check

__all__ = ["check"]
