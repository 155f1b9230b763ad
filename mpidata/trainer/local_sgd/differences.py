"""The changes of each trainer's parameters since the last average, and their mean over all trainers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from mpidata.trainer.elastic.attempt import Attempt

__all__ = ["Differences"]


class Differences:
    """The parameters at the last average, which are the same on all trainers, minus the current ones.

    Parameters
    ----------
    parameters : sequence of torch.nn.Parameter
        The trained parameters, in the same order on all trainers.

    Attributes
    ----------
    anchors : list of torch.nn.Parameter
        The parameters at the last average.
    """

    def __init__(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        self.anchors = [torch.nn.Parameter(parameter.detach().clone()) for parameter in parameters]
        self._parameters = list(parameters)
        double = [p.dtype in (torch.float64, torch.complex128) for p in parameters]
        self._parts = [
            _Part([(p, a) for p, a, is_double in zip(parameters, self.anchors, double, strict=True) if is_double is of])
            for of in sorted(set(double))
        ]

    def begin(self) -> None:
        """Store the current parameters as those of the last average."""
        with torch.no_grad():
            for parameter, anchor in zip(self._parameters, self.anchors, strict=True):
                anchor.copy_(parameter)

    def take(self, weight: float) -> None:
        """Compute this trainer's own differences, times a weight."""
        for part in self._parts:
            part.take(weight)

    def sum(self, attempt: Attempt) -> None:
        """Start to sum the differences over the trainers."""
        for part in self._parts:
            part.sum(attempt)

    def to_gradients(self, weight: float) -> None:
        """Set the gradients of `anchors` to the sum divided by a weight."""
        for part in self._parts:
            part.to_gradients(weight)

    def subtract(self) -> None:
        """Subtract the gradients from `anchors`."""
        with torch.no_grad():
            for anchor in self.anchors:
                assert anchor.grad is not None
                anchor.sub_(anchor.grad)

    def give(self) -> None:
        """Set the parameters to `anchors`, and drop the gradients."""
        with torch.no_grad():
            for parameter, anchor in zip(self._parameters, self.anchors, strict=True):
                parameter.copy_(anchor)
                anchor.grad = None


class _Part:
    """The differences that are summed in one dtype, concatenated in CPU memory."""

    def __init__(self, pairs: Sequence[tuple[torch.nn.Parameter, torch.nn.Parameter]]) -> None:
        self._pairs = pairs
        self._sizes = [_real(anchor).numel() for _, anchor in pairs]
        dtype = torch.float64 if pairs[0][0].dtype in (torch.float64, torch.complex128) else torch.float32
        self._own = torch.zeros(sum(self._sizes), dtype=dtype, device="cpu")
        self._all = self._own

    def take(self, weight: float) -> None:
        for (parameter, anchor), place in zip(self._pairs, self._places(self._own), strict=True):
            place.copy_((_real(anchor) - _real(parameter)).reshape(-1)).mul_(weight)
        self._all = self._own

    def sum(self, attempt: Attempt) -> None:
        self._all = torch.empty_like(self._own)  # MPI may still use the memory of an earlier try
        attempt.post(attempt.communicator.Iallreduce, self._own.numpy(), self._all.numpy())

    def to_gradients(self, weight: float) -> None:
        for (_, anchor), place in zip(self._pairs, self._places(self._all), strict=True):
            anchor.grad = torch.empty_like(anchor)
            real = _real(anchor.grad)
            real.copy_(place.div(weight).view(real.shape))

    def _places(self, flat: torch.Tensor) -> Iterator[torch.Tensor]:
        return iter(torch.split(flat, self._sizes))


def _real(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach()
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor
