"""`mpidata doctor`: checks of the machine and of its MPI, each with what to do where something is wrong."""

from mpidata.doctor.finding import Finding
from mpidata.doctor.run import examine

__all__ = ["Finding", "examine"]
