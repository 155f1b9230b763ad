"""mpidata.ServedEmbedding: an embedding whose rows are on the parameter servers."""

from __future__ import annotations

from collections.abc import Callable

import torch

from mpidata.errors import StreamError
from mpidata.servers.table import RowGradients, Rows

__all__ = ["ServedEmbedding"]


class ServedEmbedding(torch.nn.Module):
    """An embedding whose rows are on the job's `servers`: a step pulls and pushes only the rows that it uses.

    For embeddings that are larger than a trainer's memory. Make it a part of a model that you pass to
    `mpidata.ParameterServer`, which also steps the rows.

    Parameters
    ----------
    rows, dim : int
        Number of rows, and number of values of each row (float32).
    seed : int
        Seed of the initial values, which are drawn from a normal distribution. They are the same for any number of
        servers.

    Raises
    ------
    StreamError
        An argument is invalid.

    Notes
    -----
    A row is at least as new as the last `ParameterServer.pull`. The next `ParameterServer.push` sends the gradients of
    the rows; those of forward passes before the last pull are dropped. The module has no parameters, so its
    `state_dict` has no rows; the job's checkpoints contain all of them.
    """

    def __init__(self, rows: int, dim: int, seed: int = 0) -> None:
        super().__init__()
        for name, value, least in (("rows", rows, 1), ("dim", dim, 1), ("seed", seed, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise StreamError(
                    f"mpidata.ServedEmbedding: {name}={value!r} is not an integer of at least {least}. Give one."
                )
        self.served = Rows(rows, dim, seed)
        self._get: Callable[[torch.Tensor], torch.Tensor] | None = None
        self._used: list[tuple[torch.Tensor, torch.Tensor]] = []

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        """Return the rows of these indices, which may have any shape: shape ``(*indices.shape, dim)``."""
        if self._get is None:
            raise StreamError(
                "mpidata.ServedEmbedding: its rows are not on a server yet. First pass the model that contains it to "
                "mpidata.ParameterServer."
            )
        if not isinstance(indices, torch.Tensor) or indices.dtype.is_floating_point or indices.dtype.is_complex:
            what = indices.dtype if isinstance(indices, torch.Tensor) else type(indices).__name__
            raise StreamError(f"mpidata.ServedEmbedding: indices are {what}. Give a tensor of integers.")
        rows, inverse = torch.unique(indices.to(torch.int64), return_inverse=True)
        if len(rows) and not 0 <= rows[0] <= rows[-1] < self.served.number:
            raise IndexError(f"rows {int(rows[0])} to {int(rows[-1])} of an embedding of {self.served.number} rows")
        values = self._get(rows)
        if torch.is_grad_enabled():
            values.requires_grad_()
            self._used.append((rows, values))
        return torch.nn.functional.embedding(inverse, values)

    def extra_repr(self) -> str:
        """Return the size, for `repr`."""
        return f"{self.served.number}, {self.served.dim}"

    def serve(self, get: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """Set the function that returns rows; for mpidata itself, like the next methods."""
        self._get = get

    def forget(self) -> None:
        """Drop the gradients of all passes so far."""
        self._used.clear()

    def take_gradients(self) -> RowGradients:
        """Return and drop the gradients of the passes since the last pull or push: one for each row, sorted by row."""
        used = [(rows, values.grad) for rows, values in self._used if values.grad is not None]
        self._used.clear()
        if not used:
            return RowGradients(torch.zeros(0, dtype=torch.int64), torch.zeros(0, self.served.dim))
        all_rows = torch.cat([rows for rows, _ in used])
        rows, inverse = torch.unique(all_rows, return_inverse=True)
        values = torch.zeros(len(rows), self.served.dim)
        return RowGradients(rows, values.index_add_(0, inverse, torch.cat([values for _, values in used])))
