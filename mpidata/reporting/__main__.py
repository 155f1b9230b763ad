"""Makes the report of a run: what `mpidata run` starts at its end. Run with `python -m mpidata.reporting RUN`."""

import sys

from mpidata.reporting.make import make_report

make_report(sys.argv[1:2])
