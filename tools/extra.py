"""Print the requirements of an extra of the installed mpidata, to install them without a rebuild: extra.py test."""

import sys
from importlib.metadata import requires

from packaging.requirements import Requirement

for line in requires("mpidata") or ():
    found = Requirement(line)
    if found.marker is not None and found.marker.evaluate({"extra": sys.argv[1]}):
        found.marker = None
        print(found)
