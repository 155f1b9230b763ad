"""The job file: its keys, how it is read and checked."""

from mpidata.config.job import Job
from mpidata.config.load import load_job, resolved_yaml

__all__ = ["Job", "load_job", "resolved_yaml"]
