"""Writes scalars of four steps with the Python of ADIOS2.

Arguments: the XML file; the step in which it raises, -1 for none, 4 when the output is closed; and whether it raises
before or after it has written a variable.
"""

import os
import sys

import adios2

xml, raising, when = sys.argv[1], int(sys.argv[2]), sys.argv[3]
simulation = int(os.environ["MPIDATA_SIMULATION"])
io = adios2.Adios(xml).declare_io("output")
with adios2.Stream(io, "out.bp", "w") as stream:
    for _ in stream.steps(4):
        step = stream.current_step()
        if step == raising and when == "before":
            raise ValueError("diverged")
        stream.write("t", 100.0 + step)
        if step == raising:
            raise ValueError("diverged")
        stream.write("energy", 200.0 + 10 * simulation + step)
if raising == 4:
    raise ValueError("diverged")
