"""Normalizer: fields with mean 0 and standard deviation 1, with scales that are constant after a given batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import nn

from mpidata.errors import StreamError

if TYPE_CHECKING:
    from mpidata.trainer.dataset import MPIStreamDataset

__all__ = ["Normalizer"]


class Normalizer(nn.Module):
    """Subtracts the mean of a field, or of each of its channels, and divides by the standard deviation.

    The scales are those of `MPIStreamDataset.statistics` at batch `after`, the same on all trainers. Before that batch,
    the scales are those of the current batch.

    Parameters
    ----------
    stream : MPIStreamDataset
        The stream of a job with ``samples.statistics``, which also names the fields that have channels.
    after : int
        Number of batches (or single samples) after which the scales are constant; at least 1.

    Attributes
    ----------
    frozen : torch.Tensor
        bool, []: whether the scales are constant from now on.

    Raises
    ------
    StreamError
        The job keeps no statistics, or `after` is not a positive integer.

    Notes
    -----
    The means and standard deviations are float64 buffers, which `to`, `state_dict` and DDP include. Register the
    normalizer with ``stream.register``, so that a resumed run keeps them; a frozen normalizer then stays frozen. A run
    that resumes after batch `after` without this freezes the scales at its first batch. If a standard deviation is 0 or
    unknown, values are not divided. The two methods accept any device and dtype; integers become float32. A field
    without statistics, for example of bool, is not changed.

    Samplers that learn choose simulations for which the model is wrong, so the statistics become those of the
    simulations that are drawn, not of the whole space. A small `after`, while the simulations are nearly uniform,
    biases them least.
    """

    frozen: torch.Tensor

    def __init__(self, stream: MPIStreamDataset, after: int = 100) -> None:
        super().__init__()
        if isinstance(after, bool) or not isinstance(after, int) or after < 1:
            raise StreamError(f"Normalizer: after={after!r} is not a positive integer. Give a number of batches.")
        self._stream = stream
        self._axes = {name: (len(field.shape), stream.channel_axes.get(name)) for name, field in stream.fields.items()}
        self.register_buffer("frozen", torch.tensor(False))
        statistics = stream.statistics()
        self._scaled = frozenset(statistics)
        for name, of in statistics.items():
            # On torch's default device, like the buffers of other modules.
            self.register_buffer(f"mean_{name}", torch.zeros(of.mean.shape, dtype=torch.float64))
            self.register_buffer(f"std_{name}", torch.ones(of.std.shape, dtype=torch.float64))
        stream.when_drawn(after, self._freeze)

    def normalize(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """Normalize values of a field, of shape ``[..., *shape]``: any dimensions may precede those of the field."""
        if not self._has_scale(name):
            return values
        mean, std = self._scale(name, values)
        return (_floating(values) - mean) / std

    def denormalize(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """Undo `normalize`, for predictions of the model."""
        if not self._has_scale(name):
            return values
        mean, std = self._scale(name, values)
        return _floating(values) * std + mean

    def forward(self, batch: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the batch, or sample, with its fields normalized and everything else unchanged."""
        return {name: self.normalize(name, values) if name in self._axes else values for name, values in batch.items()}

    def _has_scale(self, name: str) -> bool:
        if name not in self._axes:
            raise StreamError(f"Normalizer: there is no field {name!r}. The fields are {', '.join(self._axes)}.")
        return name in self._scaled

    def _scale(self, name: str, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the mean and the standard deviation in the values' dtype, in a shape that broadcasts."""
        if not self.frozen:
            self._take()
        dimensions, axis = self._axes[name]
        shape = () if axis is None else (-1, *(1,) * (dimensions - 1 - axis))
        dtype = values.dtype if values.is_floating_point() else torch.float32
        mean, std = (self.get_buffer(f"{kind}_{name}").view(shape) for kind in ("mean", "std"))
        return mean.to(values.device, dtype), std.to(values.device, dtype)

    def _take(self) -> None:
        for name, of in self._stream.statistics().items():
            known = of.count > 0
            self.get_buffer(f"mean_{name}").copy_(torch.where(known, of.mean, 0.0))
            self.get_buffer(f"std_{name}").copy_(torch.where(known & (of.std > 0), of.std, 1.0))

    def _freeze(self) -> None:
        if not self.frozen:
            self._take()
            self._stream.make_alike([buffer for name, buffer in self.named_buffers() if name != "frozen"])
            self.frozen.fill_(True)


def _floating(values: torch.Tensor) -> torch.Tensor:
    return values if values.is_floating_point() else values.float()
