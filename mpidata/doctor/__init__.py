"""`mpidata doctor`: checks of the machine and of its MPI, each with a fix if something is wrong."""

from mpidata.doctor.finding import Finding
from mpidata.doctor.run import examine
from mpidata.doctor.trial import try_jobs

__all__ = ["Finding", "examine", "try_jobs"]
