"""mpidata.ParameterServer: the weights are on servers, which step them by the gradients of each trainer."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch.nn.parallel import DistributedDataParallel

from mpidata.alone.outside import in_job, say_no_job
from mpidata.errors import StreamError
from mpidata.servers.messages import MOST_BYTES
from mpidata.servers.part import ELEMENTWISE, Making, Part, State, cut, join
from mpidata.trainer import join as job
from mpidata.trainer.local_sgd.apart import How
from mpidata.trainer.served.weights import Weights

__all__ = ["ParameterServer"]

_NAME = "mpidata.ParameterServer"


class ParameterServer:
    """Keeps the weights of a model on the job's `servers`, which make a step by each trainer's gradients.

    The loop pulls the newest weights, computes gradients and pushes them::

        for batch in stream:
            server.pull()
            model.zero_grad()
            loss(model, batch).backward()
            server.push()

    Parameters
    ----------
    model : torch.nn.Module
        Alike on all trainers, as it is: no DistributedDataParallel. The first weights are those of trainer 0.
    optimizer : type
        A class of torch.optim that steps each weight by itself, such as SGD, Adam or AdamW. The servers make it.
    staleness : int
        By how many pushes a trainer may be ahead of the slowest one when it pulls. 0: the servers make one step by the
        mean of one push of each trainer.
    **settings
        Of the optimizer: ``lr=1e-3``.

    Attributes
    ----------
    version : int
        Steps that the weights of the last pull had had.
    ahead : int
        By how many pushes this trainer was ahead of the slowest one then.

    Raises
    ------
    StreamError
        An argument makes no sense, some parameters are no floating-point numbers in CPU memory, the job has no servers,
        or this is the second one of the script.

    Notes
    -----
    The constructor does not wait for the other trainers; `pull` waits, asleep, while this one is more than `staleness`
    pushes ahead. Nobody waits for a trainer whose stream is over or whose script has ended. A parameter without a
    gradient counts as having a gradient of 0. Buffers (BatchNorm) are each trainer's own. Checkpoints hold the weights
    and the optimizer's state; neither needs to be registered. Outside a job the optimizer is in this process. For one
    thread.
    """

    def __init__(
        self, model: torch.nn.Module, optimizer: type[torch.optim.Optimizer], *, staleness: int = 0, **settings: Any
    ) -> None:
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        _check(model, parameters, optimizer, staleness, settings)
        self.version = self.ahead = 0
        self._link = link = _link()
        self._weights = Weights(parameters, link.servers)
        if (most := max(part.nbytes for part in self._weights.parts)) > MOST_BYTES:
            raise StreamError(
                f"{_NAME}: a server would have {most} bytes of weights, more than {MOST_BYTES}. Raise 'servers.ranks'."
            )
        making = Making(self._weights.kinds, optimizer, settings, staleness)
        self._kept = _Kept({"version": 0, "weights": self._weights.state(), "optimizer": [{} for _ in making.kinds]})
        if in_job():
            self._be_of(job.join())
        link.join(_digest(making, parameters))
        if link.is_first:
            version, states = self._kept.take(making, link.servers)
            link.make(making, version, states)

    def pull(self) -> None:
        """Give the model the newest weights; waits while this trainer is too far ahead."""
        self.version, self.ahead = self._link.pull(self._weights.parts)
        self._weights.give()

    def push(self) -> None:
        """Send the gradients, for a step of the optimizer; does not wait for it."""
        for parameter in self._weights.parameters:
            if parameter.grad is not None and parameter.grad.layout is not torch.strided:
                raise StreamError(f"{_NAME}: a gradient is sparse. Make it dense, or use mpidata.ServedEmbedding.")
        self._link.wait_for_push()
        self._weights.take_gradients()
        self._link.push(self._weights.gradients)

    def look(self) -> None:
        """Do nothing; for mpidata itself, as the next methods."""

    def average_now(self) -> None:
        """Do nothing."""

    def come(self, how: How) -> bool:
        """Let nobody wait for this trainer, as it has nothing to train on."""
        if how is not How.LEAVING:
            self._link.rest()
        return True

    def _be_of(self, trainer: Any) -> None:
        if trainer.apart is not None:
            raise StreamError(f"{_NAME}: this script has one already, or a LocalSGD. Make one, before the loop.")
        trainer.checkpoints.hold(_NAME, self._kept)
        trainer.checkpoints.come_first = self._save
        trainer.apart = self

    def _save(self) -> None:
        version, parts = self._link.save()
        if parts:
            self._kept.state = {"version": version, **join(parts)}


class _Link(Protocol):
    """What is needed of the way to the servers."""

    servers: int

    @property
    def is_first(self) -> bool: ...
    def make(self, making: Making, version: int, states: Sequence[State]) -> None: ...
    def join(self, digest: int) -> None: ...
    def push(self, gradients: Sequence[Any]) -> None: ...
    def wait_for_push(self) -> None: ...
    def pull(self, parts: Sequence[Any]) -> tuple[int, int]: ...
    def rest(self) -> None: ...
    def save(self) -> tuple[int, list[State]]: ...


class _Alone:
    """One server in this process."""

    servers = 1
    is_first = True

    def make(self, making: Making, version: int, states: Sequence[State]) -> None:
        self._part, self._version = Part(making, 0, 1, states[0]), version

    def join(self, digest: int) -> None:
        """Tell nobody."""

    def push(self, gradients: Sequence[Any]) -> None:
        self._part.step([torch.from_numpy(gradients[0])])
        self._version += 1

    def wait_for_push(self) -> None:
        """Return at once: it has been taken."""

    def pull(self, parts: Sequence[Any]) -> tuple[int, int]:
        parts[0][:] = self._part.bytes.numpy()
        return self._version, 0

    def rest(self) -> None:
        """Tell nobody."""

    def save(self) -> tuple[int, list[State]]:
        return self._version, [self._part.state()]


class _Kept:
    """What checkpoints hold of the servers: on trainer 0 all of it, as it was at the last one."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state

    def state_dict(self) -> dict[str, Any]:
        """Give it."""
        return self.state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take it, as a checkpoint is continued."""
        self.state = state

    def take(self, making: Making, servers: int) -> tuple[int, list[State]]:
        """Give the version, and each server's part; forget it."""
        state, self.state = self.state, {}
        own = [weights.numel() for weights in state["weights"]]
        if own != [kind.count for kind in making.kinds]:
            raise StreamError(f"{_NAME}: the checkpoint is of a model with other parameters. Use the same one.")
        return state["version"], cut(state, making.kinds, servers)


def _link() -> _Link:
    if not in_job():
        say_no_job()
        return _Alone()
    trainer = job.join()
    if trainer.communicator is None:
        return _Alone()
    if trainer.servers is None:
        raise StreamError(
            f"{_NAME}: this job has no parameter servers. Add 'servers: {{ranks: 1}}' to the job file, or more."
        )
    return trainer.servers


def _digest(making: Making, parameters: Sequence[torch.Tensor]) -> int:
    shapes = [(parameter.dtype, *parameter.shape) for parameter in parameters]
    settings = sorted(making.settings.items())
    return zlib.crc32(repr((making.optimizer.__name__, making.staleness, settings, shapes)).encode())


def _check(
    model: torch.nn.Module,
    parameters: Sequence[torch.nn.Parameter],
    optimizer: type[torch.optim.Optimizer],
    staleness: int,
    settings: dict[str, Any],
) -> None:
    if isinstance(model, DistributedDataParallel):
        raise StreamError(
            f"{_NAME}: the model is a DistributedDataParallel, which adds up gradients in each step. Give the module "
            "itself."
        )
    if optimizer not in ELEMENTWISE:
        name = getattr(optimizer, "__name__", None) or f"a {type(optimizer).__name__}"
        usable = ", ".join(sorted(one.__name__ for one in ELEMENTWISE))
        raise StreamError(
            f"{_NAME}: the optimizer is {name}. Give a class that steps each weight by itself, as the servers have "
            f"parts of them, and its settings by name: {usable}."
        )
    if isinstance(staleness, bool) or not isinstance(staleness, int) or staleness < 0:
        raise StreamError(f"{_NAME}: staleness={staleness!r} is no whole number from 0 on. Give one.")
    if not parameters:
        raise StreamError(f"{_NAME}: no parameter of the model requires a gradient.")
    for parameter in parameters:
        if not parameter.is_floating_point() or parameter.device.type != "cpu" or parameter.layout is not torch.strided:
            raise StreamError(
                f"{_NAME}: a parameter is {parameter.dtype} ({parameter.layout}) on {parameter.device}. Use "
                "floating-point parameters in CPU memory."
            )
    try:
        optimizer([torch.nn.Parameter(torch.zeros(1))], **settings)
    except (TypeError, ValueError) as error:
        raise StreamError(f"{_NAME}: {optimizer.__name__} does not take these settings: {error}.") from None
