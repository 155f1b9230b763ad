"""Burgers' equation u_t + (u^2/2)_x = nu u_xx on a fine and a coarse periodic grid, the coarse one with a closure.

The fine solution gives the missing flux of the coarse scheme at each face, from which a small network learns. In every
step, a coarse run beside it takes the missing flux from this network: it reads the newest weights and evaluates them
itself (`python burgers.py reads`), or asks an inference rank (`python burgers.py asks`).
"""

import sys

import numpy as np

import mpidata

COARSE, FINER, STEPS = 64, 8, 100
WIDTH, TIME = 2 * np.pi / COARSE, 0.016  # of a coarse cell and a coarse step
VISCOSITY, LONGEST = 0.01, 20  # steps of a coarse run before it restarts from the fine solution


def flux(u, width):
    """Return the flux through the right face of each cell: local Lax-Friedrichs and diffusion."""
    right = np.roll(u, -1)
    speed = np.maximum(abs(u), abs(right))
    return (u**2 + right**2) / 4 - (speed / 2 + VISCOSITY / width) * (right - u)


def advance(u, through, width, time):
    return u - time / width * (through - np.roll(through, 1))


def stencils(u):
    """Return the values of the two cells on either side of each right face."""
    return np.stack([np.roll(u, shift) for shift in (1, 0, -1, -2)], axis=1)


def reads(u):
    """Evaluate the network of net.py in NumPy; return 0 before the first weights are published."""
    mpidata.solver.refresh()
    weights = mpidata.solver.published()
    if not weights:
        return 0.0
    hidden = np.tanh(stencils(u) @ weights["0.weight"].T + weights["0.bias"])
    return np.clip(hidden @ weights["2.weight"][0] + weights["2.bias"][0], -0.2, 0.2)


def asks(u):
    """Ask an inference rank, which runs `answer` of net.py."""
    question = {"stencils": stencils(u).astype(np.float32)}
    return mpidata.solver.infer(question, {"fluxes": ((COARSE,), np.float32)})["fluxes"]


def main(closure):
    for simulation in mpidata.solver.simulations():
        x = (np.arange(COARSE * FINER) + 0.5) * WIDTH / FINER
        amplitude, phase = simulation.parameters["amplitude"], simulation.parameters["phase"]
        fine = amplitude * (np.sin(x) + 0.5 * np.sin(3 * x + phase))
        for step in range(STEPS):
            coarse = fine.reshape(COARSE, FINER).mean(axis=1)
            if step % LONGEST == 0:
                plain, closed = coarse, coarse
            closed = advance(closed, flux(closed, WIDTH) + closure(closed), WIDTH, TIME)
            plain = advance(plain, flux(plain, WIDTH), WIDTH, TIME)
            through = np.zeros(COARSE)
            for _ in range(FINER):
                faces = flux(fine, WIDTH / FINER)
                through += faces[FINER - 1 :: FINER] / FINER
                fine = advance(fine, faces, WIDTH / FINER, TIME / FINER)
            now = fine.reshape(COARSE, FINER).mean(axis=1)
            simulation.put(
                stencils=stencils(coarse),
                fluxes=through - flux(coarse, WIDTH),
                errors=np.array([abs(run - now).mean() for run in (plain, closed)]),
            )
            simulation.step(TIME * (step + 1))


if __name__ == "__main__":
    main({"reads": reads, "asks": asks}[sys.argv[1]])
