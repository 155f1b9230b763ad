"""A parameter server is started as `python -m mpidata.server`."""

import sys

from mpidata.servers.program import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
