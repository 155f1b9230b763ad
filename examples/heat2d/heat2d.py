"""Heat equation u_t = alpha (u_xx + u_yy) on the unit square: one simulation of the ensemble per parameter set.

64 x 64 interior points, second-order differences in space, explicit Euler in time; the four sides keep their
temperature. The grid is split over the ranks of the group along y; each rank sends its own block of every sample.
u[j, i] is the temperature at x = (i + 1) h, y = (j + 1) h.

    python heat2d.py             a solver of the job (see heat2d.yaml), or one simulation when started alone
    python heat2d.py --verify    compare with an analytic solution on two grids; also under mpirun
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from mpi4py import MPI

N = 64
STEPS = 100
STEP_TIME = 0.005

Array = npt.NDArray[np.float64]


def rows(comm: MPI.Intracomm, n: int) -> tuple[int, int]:
    """Return the first row of this rank and that of the next; uneven if n is not a multiple of the ranks."""
    return n * comm.rank // comm.size, n * (comm.rank + 1) // comm.size


def exchange_halo(comm: MPI.Intracomm, u: Array) -> None:
    """Fill the first and last row of u with the neighbours' values, except at a side."""
    if comm.rank > 0:
        comm.Sendrecv(u[1], comm.rank - 1, recvbuf=u[0], source=comm.rank - 1)
    if comm.rank < comm.size - 1:
        comm.Sendrecv(u[-2], comm.rank + 1, recvbuf=u[-1], source=comm.rank + 1)


def advance(comm: MPI.Intracomm, u: Array, alpha: float, time: float) -> None:
    """Advance u by `time` in place; u has a halo of one, which holds the boundary values at a side."""
    h = 1.0 / (u.shape[1] - 1)
    substeps = max(1, math.ceil(alpha * time / (0.2 * (h * h))))  # alpha dt / h^2 <= 0.2; stable up to 0.25
    factor = alpha * (time / substeps) / (h * h)
    inner = u[1:-1, 1:-1]
    for _ in range(substeps):
        exchange_halo(comm, u)
        inner += factor * (((u[1:-1, :-2] + u[1:-1, 2:]) + (u[:-2, 1:-1] + u[2:, 1:-1])) - 4.0 * inner)


def simulate(comm: MPI.Intracomm, parameters: Mapping[str, float]) -> Iterator[tuple[float, Array]]:
    """Run one simulation; yield the time and this rank's rows, shape (rows, N), after every output step."""
    first, last = rows(comm, N)
    u = np.full((last - first + 2, N + 2), parameters["initial"], dtype=np.float64)
    u[0] = parameters["bottom"]  # between two ranks the first exchange overwrites it
    u[-1] = parameters["top"]
    u[:, 0] = parameters["left"]
    u[:, -1] = parameters["right"]
    for step in range(1, STEPS + 1):
        advance(comm, u, parameters["alpha"], STEP_TIME)
        yield step * STEP_TIME, u[1:-1, 1:-1]


def error_on_grid(comm: MPI.Intracomm, n: int) -> float:
    """Return the largest error at t = 0.1 against sin(pi x) sin(pi y) exp(-2 pi^2 alpha t), which is 0 at the sides."""
    alpha, time = 0.5, 0.1
    first, last = rows(comm, n)
    points = np.arange(1, n + 1) / (n + 1)
    mode = np.sin(np.pi * points[first:last, None]) * np.sin(np.pi * points)
    u = np.zeros((last - first + 2, n + 2))
    u[1:-1, 1:-1] = mode
    advance(comm, u, alpha, time)
    error = np.abs(u[1:-1, 1:-1] - mode * math.exp(-2 * math.pi**2 * alpha * time)).max()
    return float(max(comm.allgather(error)))


def verify() -> None:
    """Print the error on two grids and the order of convergence."""
    from mpi4py import MPI

    coarse, fine = error_on_grid(MPI.COMM_WORLD, 31), error_on_grid(MPI.COMM_WORLD, 63)
    if MPI.COMM_WORLD.rank == 0:
        order = math.log2(coarse / fine)
        print(f"error {coarse:.6e} on 31 x 31, {fine:.6e} on 63 x 63: order {order:.3f}")


def main() -> None:
    """Run the simulations that the job gives to this group."""
    import mpidata

    group = mpidata.solver.group()
    first, _ = rows(group, N)
    for simulation in mpidata.solver.simulations():
        for time, u in simulate(group, simulation.parameters):
            simulation.put_block("temperature", u, start=(first, 0))
            simulation.step(time)


if __name__ == "__main__":
    verify() if "--verify" in sys.argv else main()
