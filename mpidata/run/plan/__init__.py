"""The plan of a job, a class for each of its sections, and its text."""

from mpidata.run.plan.plan import Plan
from mpidata.run.plan.programs import Program
from mpidata.run.plan.samples import Field, Length

__all__ = ["Field", "Length", "Plan", "Program"]
