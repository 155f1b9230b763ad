"""Makes the report of a run: what `mpidata run` starts at its end. Run with `python -m mpidata.reporting RUN`."""

import sys

from mpidata.errors import MpidataError
from mpidata.reporting.make import make_report

try:
    make_report(sys.argv[1:2])
except MpidataError as error:
    sys.exit(str(error))
