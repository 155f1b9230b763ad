"""The learner is started as `python -m mpidata.learner`."""

import sys

from mpidata.sampling.learner.program import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
