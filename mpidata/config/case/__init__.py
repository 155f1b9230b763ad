"""`solvers.case` and `solvers.output`: the folder of each simulation, and what is read of what is written there."""

from mpidata.config.case.folder import Case, wrong_mark
from mpidata.config.case.output import Output

__all__ = ["Case", "Output", "wrong_mark"]
