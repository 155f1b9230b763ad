"""Print what an extra of the installed mpidata needs: extra.py test. To install these builds nothing anew."""

import sys
from importlib.metadata import requires

from packaging.requirements import Requirement

for line in requires("mpidata") or ():
    found = Requirement(line)
    if found.marker is not None and found.marker.evaluate({"extra": sys.argv[1]}):
        found.marker = None
        print(found)
