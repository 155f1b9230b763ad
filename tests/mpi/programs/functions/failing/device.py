"""A function and a program whose device fails in the first try of simulation 1, at its second step."""

import os
import random

import numpy as np
from on_device import Device

import mpidata


def values(simulation, step):
    device = Device(os.environ["STANDIN"])
    if simulation == 1 and step == 1 and not os.path.exists("failed"):
        open("failed", "w").close()
        device.functions.fail(b"cuMemcpyDtoHAsync", 700)
    return device.array(np.full((4, 6), 10 * simulation + step, np.float32), random.Random(step), False)


def simulate(alpha, simulation):
    for step in range(4):
        yield {"u": values(simulation, step)}


if __name__ == "__main__":
    for simulation in mpidata.solver.simulations():
        for step in range(4):
            try:
                simulation.put(u=values(simulation.id, step))
            except Exception as error:
                print(error)  # the program continues: all its calls fail from now on
            simulation.step(step)
