"""The start of an inference rank: `python -m mpidata.inference SETTINGS`."""

import sys

from mpidata.inference.program import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
