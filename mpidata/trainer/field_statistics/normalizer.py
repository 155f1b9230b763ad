"""Normalizer: fields of mean 0 and standard deviation 1, with numbers that stay the same from some batch on."""

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

    The numbers are those of `MPIStreamDataset.statistics` as of batch `after`, on all trainers the same. Before it,
    those of the present batch are used.

    Parameters
    ----------
    stream : MPIStreamDataset
        Of a job with ``samples.statistics``, which also says which fields have channels.
    after : int
        Number of batches (or single samples) after which the numbers stay; at least 1.

    Attributes
    ----------
    frozen : torch.Tensor
        bool, []: whether the numbers stay from now on.

    Raises
    ------
    StreamError
        The job keeps no statistics, or `after` is no positive whole number.

    Notes
    -----
    The means and standard deviations are buffers, float64: they go with `to`, `state_dict` and DDP. Register a
    normalizer with ``stream.register``, so that a resumed run keeps them; one that was frozen stays so. A run that
    resumes behind batch `after` without that freezes with its first batch. Where a standard deviation is 0 or not
    known, nothing is divided. The two methods are for any device and dtype; integers become float32. A field without
    statistics, for example of bool, stays as it is.

    Samplers that learn put simulations where the model is wrong, so the statistics become those of what is drawn, not
    of the whole space: a small `after`, while all is nearly uniform, biases them least.
    """

    frozen: torch.Tensor

    def __init__(self, stream: MPIStreamDataset, after: int = 100) -> None:
        super().__init__()
        if isinstance(after, bool) or not isinstance(after, int) or after < 1:
            raise StreamError(f"Normalizer: after={after!r} is no positive whole number. Give a number of batches.")
        self._stream = stream
        self._axes = {name: (len(field.shape), stream.channel_axes.get(name)) for name, field in stream.fields.items()}
        self.register_buffer("frozen", torch.tensor(False))
        statistics = stream.statistics()
        self._scaled = frozenset(statistics)
        for name, of in statistics.items():
            # On torch's default device, as the buffers of other modules.
            self.register_buffer(f"mean_{name}", torch.zeros(of.mean.shape, dtype=torch.float64))
            self.register_buffer(f"std_{name}", torch.ones(of.std.shape, dtype=torch.float64))
        stream.when_drawn(after, self._freeze)

    def normalize(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """Normalize values of a field, of shape ``[..., *shape]``: any dimensions come before those of the field."""
        if not self._has_scale(name):
            return values
        mean, std = self._scale(name, values)
        return (_floating(values) - mean) / std

    def denormalize(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """Undo `normalize`: for what the model predicts."""
        if not self._has_scale(name):
            return values
        mean, std = self._scale(name, values)
        return _floating(values) * std + mean

    def forward(self, batch: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the batch, or sample, with its fields normalized; the rest as it is."""
        return {name: self.normalize(name, values) if name in self._axes else values for name, values in batch.items()}

    def _has_scale(self, name: str) -> bool:
        if name not in self._axes:
            raise StreamError(f"Normalizer: there is no field {name!r}. The fields are {', '.join(self._axes)}.")
        return name in self._scaled

    def _scale(self, name: str, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and standard deviation in the values' dtype, in a shape that fits."""
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
