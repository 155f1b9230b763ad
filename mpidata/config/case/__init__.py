"""`solvers.case` and `solvers.output`: the folder of each simulation, and the files read from it."""

from mpidata.config.case.folder import Case, wrong_mark
from mpidata.config.case.output import Output

__all__ = ["Case", "Output", "wrong_mark"]
