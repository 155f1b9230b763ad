"""Makes the report of a run; `mpidata run` starts this at its end, as `python -m mpidata.reporting RUN`."""

import sys

from mpidata.errors import MpidataError
from mpidata.reporting.make import make_report

try:
    make_report(sys.argv[1:2])
except MpidataError as error:
    sys.exit(str(error))
