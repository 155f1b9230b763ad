"""The rows of an embedding, divided among the servers; each step changes only the rows that it used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

__all__ = ["SPARSE", "RowGradients", "Rows", "Table", "read_gradients", "write_gradients"]

SPARSE: dict[type[torch.optim.Optimizer], tuple[type[torch.optim.Optimizer], tuple[str, ...]]] = {
    torch.optim.SGD: (torch.optim.SGD, ("lr",)),
    torch.optim.Adagrad: (torch.optim.Adagrad, ("lr", "lr_decay", "initial_accumulator_value", "eps")),
    torch.optim.Adam: (torch.optim.SparseAdam, ("lr", "betas", "eps")),
}
"""By the optimizer of the other weights: the one that steps the rows that were used, and its settings."""

_BLOCK = 4096  # rows whose first values are drawn together, so that they are the same for any number of servers


class Rows(NamedTuple):
    """Description of an embedding: float32, shape (number, dim), drawn from a normal distribution by a seed."""

    number: int
    dim: int
    seed: int

    def bounds(self, servers: int) -> list[int]:
        """Return the first row of each server, and the number of rows."""
        return [self.number * server // servers for server in range(servers + 1)]

    def draw(self, first: int, last: int) -> torch.Tensor:
        """Draw the first values of some rows."""
        values = torch.empty(last - first, self.dim)
        for block in range(first // _BLOCK, -(-last // _BLOCK)):
            generator = torch.Generator().manual_seed(self.seed * 0x9E3779B97F4A7C15 + block & (1 << 63) - 1)
            begin, end = max(first, block * _BLOCK), min(last, (block + 1) * _BLOCK)
            drawn = torch.randn(_BLOCK, self.dim, generator=generator)
            values[begin - first : end - first] = drawn[begin - block * _BLOCK : end - block * _BLOCK]
        return values


class RowGradients(NamedTuple):
    """Gradients of some rows: int64 and float32."""

    rows: torch.Tensor
    values: torch.Tensor


class Table:
    """The rows of one server.

    Parameters
    ----------
    rows : Rows
        Of the whole embedding.
    optimizer : torch.optim.Optimizer
        Creates the optimizer of these rows.
    server, servers : int
        Number of the server, and of all servers.
    values : torch.Tensor or None
        Of these rows; None: they are drawn.
    kept : mapping
        The optimizer's state of these rows.
    """

    def __init__(
        self,
        rows: Rows,
        optimizer: Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer],
        server: int,
        servers: int,
        values: torch.Tensor | None,
        kept: Mapping[str, Any],
    ) -> None:
        self._first, last = rows.bounds(servers)[server : server + 2]
        self._values = torch.nn.Parameter(rows.draw(self._first, last) if values is None else values)
        self._optimizer = optimizer([self._values])
        if kept:
            self._optimizer.state[self._values] = dict(kept)

    def get(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the values of some rows."""
        return self._values.detach()[rows - self._first]

    def step(self, pushes: Sequence[RowGradients]) -> None:
        """Make a step with the mean of some pushes; a row that is missing in a push has a gradient of 0 in it.

        A step without any row also counts, so that all servers have made the same number.
        """
        rows = torch.cat([push.rows for push in pushes]) - self._first
        values = torch.cat([push.values for push in pushes]) / len(pushes)
        gradients = torch.sparse_coo_tensor(rows.unsqueeze(0), values, self._values.shape, check_invariants=True)
        self._values.grad = gradients.coalesce()
        with torch.sparse.check_sparse_tensor_invariants(False):  # type: ignore[no-untyped-call]  # or torch warns
            self._optimizer.step()
        self._values.grad = None

    def state(self) -> tuple[torch.Tensor, dict[str, Any]]:
        """Return the values of these rows, and the optimizer's state of them."""
        return self._values.detach(), dict(self._optimizer.state[self._values])


def write_gradients(of: Sequence[RowGradients]) -> bytes:
    """Return the gradients of rows of several embeddings as bytes, for a push."""
    parts = [np.array([len(one.rows) for one in of], np.int64).tobytes()]
    for one in of:
        parts += [one.rows.numpy().tobytes(), one.values.numpy().tobytes()]
    return b"".join(parts)


def read_gradients(data: Any, dims: Sequence[int]) -> list[RowGradients]:
    """Read the result of `write_gradients`: uint8, of embeddings whose rows have `dims` values."""
    data = data.tobytes()
    counts, at = np.frombuffer(data, np.int64, len(dims)), 8 * len(dims)
    found = []
    for count, dim in zip(counts.tolist(), dims, strict=True):
        rows = np.frombuffer(data, np.int64, count, at).copy()
        at += rows.nbytes
        values = np.frombuffer(data, np.float32, count * dim, at).reshape(count, dim).copy()
        at += values.nbytes
        found.append(RowGradients(torch.from_numpy(rows), torch.from_numpy(values)))
    return found
