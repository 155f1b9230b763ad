"""The sum of the trainers' gradients: in buckets during the backward pass, repeated if a trainer dies."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from mpidata.errors import StreamError
from mpidata.trainer.elastic.attempt import Attempt
from mpidata.trainer.elastic.members import Members
from mpidata.trainer.elastic.points import reached
from mpidata.trainer.shares.weights import weigh

__all__ = ["Reducer", "SharedTensors", "bytes_of", "make_alike"]

# The first bucket is small, so that its sum starts early, as in torch's DistributedDataParallel.
_FIRST_BYTES, _BUCKET_BYTES = 1 << 20, 25 << 20


class Reducer:
    """Averages the gradients over the living trainers at the end of each backward pass.

    A trainer's own gradients are kept until all know that the sum counts. A parameter that no trainer uses in a pass
    keeps its gradient; one that only some use counts as zero on the others.

    Parameters
    ----------
    parameters : sequence of torch.nn.Parameter
        The trained parameters, in the same order on all trainers; in CPU memory.
    buffers : sequence of torch.Tensor
        After each pass all trainers have the buffers of the trainer with number 0.
    members : Members
        The trainers.
    weigh : callable
        Returns, once for each mean, the weight of this trainer's gradients in it.

    Attributes
    ----------
    on : bool
        Whether the next backward pass averages; false within `no_sync`.

    Notes
    -----
    For the thread that runs the backward pass. Its end is collective over the living trainers.
    """

    def __init__(
        self,
        parameters: Sequence[torch.nn.Parameter],
        buffers: Sequence[torch.Tensor],
        members: Members,
        weigh: Callable[[], float],
    ) -> None:
        self.on = True
        self._members, self._weigh = members, weigh
        self._buffers = list(buffers)
        self._buckets = list(_in_buckets(parameters))
        self._of: dict[torch.Tensor, _Bucket] = {p: bucket for bucket in self._buckets for p in bucket.parameters}
        self._next = 0  # the buckets are summed in order, the same on all trainers
        self._attempt: Attempt | None = None
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(self._came)  # type: ignore[no-untyped-call]

    def _came(self, parameter: torch.Tensor) -> None:
        """Take a gradient that is complete."""
        if not self.on:
            return
        if self._attempt is None:
            self._attempt = self._members.attempt()
            weight = self._weigh()
            for bucket in self._buckets:
                bucket.begin(weight)
            self._next = 0
            reached("backward")
            torch.autograd.Variable._execution_engine.queue_callback(self._end)
        self._of[parameter].take(parameter)
        self._sum_whole(self._attempt)

    def check(self) -> None:
        """Raise StreamError if the last backward pass has not ended: the others wait for its sums."""
        if self._attempt is not None:
            raise StreamError(
                "mpidata.DistributedDataParallel: the last backward pass raised an exception, and the other trainers "
                "wait for its gradients. Let the script end with that exception."
            )

    def _sum_whole(self, attempt: Attempt) -> None:
        while self._next < len(self._buckets) and self._buckets[self._next].is_whole:
            self._buckets[self._next].sum(attempt)
            self._next += 1
            reached("sum")

    def _end(self) -> None:
        attempt, self._attempt = self._attempt, None
        assert attempt is not None
        for bucket in self._buckets:
            bucket.take_rest()
        self._sum_whole(attempt)
        shared = SharedTensors(self._buffers, self._members)
        shared.send(attempt)

        def again(attempt: Attempt) -> None:
            for bucket in self._buckets:
                bucket.renew()
                bucket.sum(attempt)
            shared.send(attempt)

        self._members.together(again, attempt, step=True)
        reached("agreed")
        for bucket in self._buckets:
            bucket.give()
        shared.give()


class _Bucket:
    """Gradients of one dtype that are summed together, followed by a flag for each that exists, and their weight."""

    def __init__(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        self.parameters = parameters
        self._real = [torch.view_as_real(p.detach()).numel() if p.is_complex() else p.numel() for p in parameters]
        dtype = torch.float64 if parameters[0].dtype in (torch.float64, torch.complex128) else torch.float32
        n = sum(self._real)
        self._own, self._all = (torch.zeros(n + len(parameters) + 1, dtype=dtype, device="cpu") for _ in range(2))
        places = torch.split(self._own[:n], self._real)
        self._places: dict[torch.Tensor, tuple[int, torch.Tensor]] = {
            parameter: (i, places[i]) for i, parameter in enumerate(parameters)
        }
        self._there = self._own[n:-1]
        self._lacking: set[torch.Tensor] = set()
        self._weight = 1.0

    def begin(self, weight: float) -> None:
        self._own[-1] = self._weight = weight
        self._lacking = set(self.parameters)

    @property
    def is_whole(self) -> bool:
        return not self._lacking

    def take(self, parameter: torch.Tensor) -> None:
        if parameter not in self._lacking:
            return
        self._lacking.discard(parameter)
        number, place = self._places[parameter]
        grad = parameter.grad
        if grad is None:
            place.zero_()
        elif grad.is_sparse:
            raise StreamError(
                "mpidata.DistributedDataParallel does not support sparse gradients. Give the embedding sparse=False."
            )
        else:
            place.copy_((torch.view_as_real(grad) if grad.is_complex() else grad).reshape(-1))
            if self._weight != 1.0:
                weigh(place, self._weight)
        self._there[number] = float(grad is not None)

    def take_rest(self) -> None:
        """Take the gradients that this pass did not compute: those of an earlier pass, or none."""
        for parameter in list(self._lacking):
            self.take(parameter)

    def renew(self) -> None:
        """Get new memory, because a failed sum may still write to the old."""
        self._all = torch.empty_like(self._all)

    def sum(self, attempt: Attempt) -> None:
        attempt.post(attempt.communicator.Iallreduce, self._own.numpy(), self._all.numpy())

    def give(self) -> None:
        n = sum(self._real)
        *there, weight = self._all[n:].tolist()
        mean = self._all[:n].div_(weight or 1.0)
        for parameter, part, used in zip(self.parameters, torch.split(mean, self._real), there, strict=True):
            if not used:
                continue
            if parameter.grad is None:
                parameter.grad = torch.empty_like(parameter)
            grad = torch.view_as_real(parameter.grad) if parameter.is_complex() else parameter.grad
            grad.detach().copy_(part.view(grad.shape))


class SharedTensors:
    """Tensors whose values are taken from the trainer with number 0."""

    def __init__(self, tensors: Sequence[torch.Tensor], members: Members) -> None:
        self._tensors, self._members = list(tensors), members
        self._bytes = _bytes_of(self._tensors)
        self._received = self._bytes

    def send(self, attempt: Attempt) -> None:
        """Start to send the values of the trainer with number 0 to the others."""
        if len(self._bytes):
            own = self._members.rank == 0
            self._received = self._bytes if own else torch.empty_like(self._bytes)
            attempt.post(attempt.communicator.Ibcast, self._received.numpy(), self._members.root)

    def give(self) -> None:
        """Copy the received values into the tensors."""
        if self._received is self._bytes:
            return
        sizes = [tensor.numel() * tensor.element_size() for tensor in self._tensors]
        _give(self._tensors, sizes, self._received)


def _bytes_of(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the concatenated values of tensors, copied to CPU memory."""
    flat = [tensor.detach().contiguous().reshape(-1).view(torch.uint8) for tensor in tensors]
    return torch.cat(flat).cpu() if flat else torch.empty(0, dtype=torch.uint8, device="cpu")


def bytes_of(tensors: Sequence[torch.Tensor]) -> bytes:
    """Return the concatenated values of tensors."""
    return _bytes_of(tensors).numpy().tobytes()


def _give(tensors: Sequence[torch.Tensor], sizes: Sequence[int], flat: torch.Tensor) -> None:
    for tensor, part in zip(tensors, torch.split(flat, list(sizes)), strict=True):
        with torch.no_grad():
            tensor.copy_(part.clone().view(tensor.dtype).view(tensor.shape))


def make_alike(tensors: Sequence[torch.Tensor], members: Members, what: str) -> None:
    """Set the tensors of a module on all trainers to the values of the trainer with number 0.

    Raises StreamError, starting with `what`, if they differ in number, shape or dtype. Collective over the living
    trainers, except one that has just taken a place, which uses the values that it was given; sleeps.
    """
    if members.is_new:
        given = members.giving.model
        alike = _take(tensors, given if isinstance(given, bytes) else b"")
    else:
        alike = _are_alike(tensors, members)
    if not alike:
        raise StreamError(
            f"{what}: the module differs between trainers: the number, shapes or dtypes of its parameters are not the "
            "same. Create the same model on each trainer."
        )
    if not members.is_new:
        shared = SharedTensors(tensors, members)
        members.together(shared.send)
        shared.give()


def _take(tensors: Sequence[torch.Tensor], values: bytes) -> bool:
    """Set tensors to the values of `bytes_of`; False if the sizes differ."""
    sizes = [tensor.numel() * tensor.element_size() for tensor in tensors]
    if sum(sizes) != len(values):
        return False
    if values:
        _give(tensors, sizes, torch.frombuffer(bytearray(values), dtype=torch.uint8))
    return True


def _are_alike(tensors: Sequence[torch.Tensor], members: Members) -> bool:
    from mpi4py import MPI

    text = " ".join(f"{tuple(tensor.shape)} {tensor.dtype} {tensor.requires_grad}" for tensor in tensors)
    own = np.frombuffer(hashlib.blake2b(text.encode(), digest_size=8).digest(), np.int64).copy()
    least, greatest = own.copy(), own.copy()

    def compare(attempt: Attempt) -> None:
        attempt.post(attempt.communicator.Iallreduce, own, greatest, MPI.MAX)
        attempt.post(attempt.communicator.Iallreduce, own, least, MPI.MIN)

    members.together(compare)
    return bool(least == greatest)


def _in_buckets(parameters: Sequence[torch.nn.Parameter]) -> Iterator[_Bucket]:
    """Put the parameters into buckets, the last ones first, because their gradients come first."""
    limit = _FIRST_BYTES
    kinds: dict[Any, list[torch.nn.Parameter]] = {}
    for parameter in reversed(parameters):
        kinds.setdefault(parameter.dtype, []).append(parameter)
    for of_kind in kinds.values():
        bucket: list[torch.nn.Parameter] = []
        size = 0
        for parameter in of_kind:
            bucket.append(parameter)
            size += parameter.numel() * parameter.element_size()
            if size >= limit:
                yield _Bucket(bucket)
                bucket, size, limit = [], 0, _BUCKET_BYTES
        if bucket:
            yield _Bucket(bucket)
