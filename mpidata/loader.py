"""A loader is started as `python -m mpidata.loader`."""

import sys

from mpidata.loaders.program import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
