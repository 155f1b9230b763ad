"""A simulation of 1000 steps; in simulation 1 the sixth takes minutes, and a file marks its start."""

import os
import pathlib
import time


def simulate(alpha, simulation):
    for step in range(1000):
        yield {"u": [[alpha] * 6] * 4}
        if simulation == 1 and step == 5:
            pathlib.Path(os.environ["MPIDATA_RUN"], "in_long_step").touch()
            time.sleep(600)
        time.sleep(0.01)
