"""Heat equation u_t = alpha (u_xx + u_yy) on an ellipse, with linear finite elements on a triangle mesh.

Each simulation has its own mesh: the width of the ellipse and the spacing of the nodes are parameters. The boundary has
temperature 0; backward Euler in time. Each rank of the group puts its part of the nodes, and the edges that start
there; an edge names its nodes by their numbers in the whole mesh, from 0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix, csc_matrix, diags
from scipy.sparse.linalg import splu
from scipy.spatial import Delaunay

STEPS = 20
STEP_TIME = 0.004

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def make_nodes(width: float, spacing: float, chance: np.random.Generator) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Place nodes on and inside the ellipse, ordered by x; return them, (nodes, 2), and which ones are inside."""
    angles = np.linspace(0, 2 * np.pi, int(np.pi * (width + 1) / 2 / spacing), endpoint=False)
    boundary = np.stack([np.cos(angles), np.sin(angles)], 1)
    grid = np.stack(np.meshgrid(np.arange(-width / 2, width / 2, spacing), np.arange(-0.5, 0.5, spacing)), -1).reshape(
        -1, 2
    )
    within = (grid + chance.uniform(-0.3, 0.3, grid.shape) * spacing) / [width / 2, 0.5]
    within = within[np.hypot(*within.T) < 1 - 1.2 * spacing]
    xy = np.concatenate([boundary, within]) * [width / 2, 0.5]
    order = np.argsort(xy[:, 0])
    return xy[order], order >= len(boundary)


def find_edges(triangles: Integers) -> Integers:
    """Return each edge of the mesh once, ordered by its first node: (2, edges)."""
    pairs = np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    return np.unique(pairs, axis=0).T


def assemble(xy: Floats, triangles: Integers) -> tuple[Floats, csc_matrix]:
    """Return the lumped masses, (nodes,), and the stiffness matrix."""
    a, b, c = (xy[triangles[:, i]] for i in range(3))
    area = np.abs((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]) / 2
    sides = np.stack([c - b, a - c, b - a], 1)  # opposite to each corner
    local = np.einsum("tid,tjd->tij", sides, sides) / (4 * area[:, None, None])
    rows, columns = np.repeat(triangles, 3, axis=1), np.tile(triangles, 3)
    stiffness = coo_matrix((local.ravel(), (rows.ravel(), columns.ravel())), (len(xy), len(xy)))
    return np.bincount(triangles.ravel(), np.repeat(area / 3, 3), len(xy)), stiffness.tocsc()


def initial(xy: Floats, chance: np.random.Generator) -> Floats:
    """Return temperatures with some hot spots."""
    centres, heights = chance.uniform(-0.4, 0.4, (4, 2)), chance.uniform(0.5, 1, 4)
    squares = ((xy[:, None] - centres) ** 2).sum(-1)
    return np.asarray((heights * np.exp(-squares / 0.02)).sum(1))


def main() -> None:
    """Run the simulations that the job gives to this group."""
    import mpidata

    group = mpidata.solver.group()
    for simulation in mpidata.solver.simulations():
        chance = np.random.default_rng(simulation.id)
        parameters = simulation.parameters
        xy, inner = make_nodes(parameters["width"], parameters["spacing"], chance)
        triangles = Delaunay(xy).simplices.astype(np.int64)
        edges = find_edges(triangles)
        masses, stiffness = assemble(xy, triangles)
        # Inside: (M + dt alpha K) u_next = M u; on the boundary: u_next = 0. Each rank solves the whole small system.
        free = diags(inner.astype(float))
        matrix = free @ (diags(masses) + STEP_TIME * parameters["alpha"] * stiffness) + diags(1.0 - inner)
        solve = splu(matrix.tocsc()).solve

        first, end = (len(xy) * rank // group.size for rank in (group.rank, group.rank + 1))
        own = slice(first, end)
        own_edges = edges[:, (first <= edges[0]) & (edges[0] < end)]
        u = initial(xy, chance) * inner
        for step in range(STEPS):
            u_next = solve(masses * u * inner)
            simulation.put(xy=xy[own], inner=inner[own].astype(float), u=u[own], u_next=u_next[own])
            simulation.put(edge_index=own_edges)
            simulation.step(step * STEP_TIME)
            u = u_next


if __name__ == "__main__":
    main()
