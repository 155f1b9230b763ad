"""Writes scalars of four steps through ADIOS2's Python interface, and misbehaves in one given step.

Arguments: the XML file; the step; and what happens in it: "raises" before writing anything, "raises late" after one
variable, "reopens", or "nan" for a time that is not finite. If the step is 4, the program raises after Close.
"""

import os
import sys

import adios2
import numpy as np

xml, odd, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
simulation = int(os.environ["MPIDATA_SIMULATION"])
io = adios2.Adios(xml).declare_io("output")
unwanted = io.define_variable("unwanted", np.zeros(1), [], [], [])
with adios2.Stream(io, "out.bp", "w") as stream:
    for _ in stream.steps(4):
        step = stream.current_step()
        if step == odd and how == "raises":
            raise ValueError("diverged")
        stream.write("t", float("nan") if step == odd and how == "nan" else 100.0 + step)
        if step == odd and how == "raises late":
            raise ValueError("diverged")
        stream.write("energy", 200.0 + 10 * simulation + step)
        if step == odd and how == "reopens":
            adios2.Stream(io, "other.bp", "w")
    stream.engine.put(unwanted, np.ones(1), adios2.bindings.Mode.Sync)  # no step follows
if odd == 4:
    raise ValueError("diverged")
