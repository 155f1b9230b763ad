"""The job file: its keys, and how it is read and checked."""

from mpidata.config.job import Job
from mpidata.config.load import keys_of, load_job, resolved_yaml

__all__ = ["Job", "keys_of", "load_job", "resolved_yaml"]
