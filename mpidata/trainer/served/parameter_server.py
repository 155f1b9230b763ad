"""mpidata.ParameterServer: servers store the weights and step them with the gradients of each trainer."""

from __future__ import annotations

import ctypes
import functools
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mpidata.errors import StreamError
from mpidata.native.library import check as check_status
from mpidata.run.job_environment import in_job, say_no_job
from mpidata.servers.messages import MOST_BYTES
from mpidata.servers.part import Making, State, cut, join
from mpidata.servers.table import RowGradients, write_gradients
from mpidata.servers.trained_samples import pack
from mpidata.trainer import join as job
from mpidata.trainer.elastic.attempt import Attempt
from mpidata.trainer.elastic.members import Members
from mpidata.trainer.local_sgd.meeting_points import How
from mpidata.trainer.served.checks import NAME, check
from mpidata.trainer.served.embedding import ServedEmbedding
from mpidata.trainer.served.link import Link
from mpidata.trainer.served.local_server import Alone
from mpidata.trainer.served.weights import Weights

__all__ = ["ParameterServer"]


class ParameterServer:
    """Stores the weights of a model on the job's `servers`, which make a step with each trainer's gradients.

    The loop pulls the newest weights, computes gradients and pushes them::

        for batch in stream:
            server.pull()
            model.zero_grad()
            loss(model, batch).backward()
            server.push()

    Parameters
    ----------
    model : torch.nn.Module
        The same architecture on all trainers, and not a DistributedDataParallel. The initial weights are those of
        trainer 0.
    optimizer : type
        A class of torch.optim that steps each weight independently, such as SGD, Adam or AdamW. The servers create it.
    staleness : int
        Largest number of pushes by which a trainer may be ahead of the slowest one when it pulls. 0: the servers make
        one step with the mean of one push of each trainer.
    **settings
        Arguments of the optimizer, for example ``lr=1e-3``.

    Attributes
    ----------
    version : int
        Number of steps made to the weights of the last pull.
    ahead : int
        Number of pushes by which this trainer was then ahead of the slowest one.

    Raises
    ------
    StreamError
        An argument is invalid, some parameters are not floating-point numbers in CPU memory, the job has no servers, or
        the script already has a ParameterServer or LocalSGD.

    Notes
    -----
    The constructor does not wait for the other trainers. `pull` sleeps while this trainer is more than `staleness`
    pushes ahead. Nobody waits for a trainer whose stream is over or whose script has ended. A parameter without a
    gradient counts as having a gradient of 0. Each trainer has its own buffers (BatchNorm). Checkpoints contain the
    weights and the optimizer's state; you need not register them. Outside a job the optimizer is in this process. For
    one thread.
    """

    def __init__(
        self, model: torch.nn.Module, optimizer: type[torch.optim.Optimizer], *, staleness: int = 0, **settings: Any
    ) -> None:
        trainer = job.join() if in_job() else None  # first, so that the job learns of refused arguments
        if not isinstance(model, torch.nn.Module):
            raise StreamError(f"{NAME}: model is of type {type(model).__name__}. Give a torch.nn.Module.")
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._embeddings = [module for module in model.modules() if isinstance(module, ServedEmbedding)]
        check(model, parameters, bool(self._embeddings), optimizer, staleness, settings)
        self.version = self.ahead = 0
        self._link = link = _link()
        self._weights = Weights(parameters, link.servers)
        if (most := max(part.nbytes for part in self._weights.parts)) > MOST_BYTES:
            raise StreamError(
                f"{NAME}: a server would have {most} bytes of weights, more than {MOST_BYTES}. Raise 'servers.ranks'."
            )
        tables = [embedding.served for embedding in self._embeddings]
        self._members = None if trainer is None else trainer.members
        self._has_joined = self._members is not None and self._members.is_new
        place = 0 if self._members is None else self._members.places().nbytes
        making = Making(self._weights.kinds, optimizer, settings, staleness, tables, place)
        first = [*self._weights.state(), *(None for _ in tables)]
        self._kept = _Kept({"version": 0, "weights": first, "optimizer": [{} for _ in first]})
        if Alone.made if trainer is None else trainer.apart is not None:
            raise StreamError(f"{NAME}: this script already has one, or a LocalSGD. Create only one, before the loop.")
        if trainer is not None:
            self._be_of(trainer)
        Alone.made = trainer is None
        link.join(_digest(making, parameters))
        if link.is_first:
            version, states = self._kept.take(making, link.servers)
            link.make(making, version, states)
        for number, embedding in enumerate(self._embeddings):
            embedding.serve(functools.partial(self._rows, number))

    def pull(self) -> None:
        """Copy the newest weights into the model; sleeps while this trainer is too far ahead."""
        self.look()
        self.version, self.ahead = self._link.pull(self._weights.parts)
        self._weights.give()
        for embedding in self._embeddings:
            embedding.forget()
        if self._members is not None:
            self._members.tell()

    def push(self) -> None:
        """Send the gradients for a step of the optimizer, without waiting for the step."""
        for parameter in self._weights.parameters:
            if parameter.grad is not None and parameter.grad.layout is not torch.strided:
                raise StreamError(f"{NAME}: a gradient is sparse. Make it dense, or use mpidata.ServedEmbedding.")
        self._link.wait_for_push()
        self._weights.take_gradients()
        pushes = self._with_rows() if self._embeddings else list(self._weights.gradients)
        if self._members is not None:
            drawn = self._members.drawn
            samples = np.empty((0, 2), np.int64) if drawn is None else drawn.take_out()
            pushes[0] = np.concatenate([pushes[0], pack(self._members.places(), samples)])
            self._members.stepped()
        self._link.push(pushes)

    def look(self) -> None:
        """If this trainer has just joined, exclude it from the checkpoint that was agreed on before.

        For mpidata itself, like the next methods.
        """
        if self._has_joined and isinstance(self._link, Link) and (before := self._checkpoints()[1]) >= 0:
            self._has_joined = False
            self._link.absent(before)

    def hear(self) -> None:
        """Synchronize all trainers about a requested number of trainers, and the position of the furthest one."""
        if self._members is not None and self._members.has_news:
            self._link.pause()
            self._round(None, self._members)

    def average_now(self) -> None:
        """Continue without the trainers that have died."""
        if self._members is not None:
            self._members.look()

    def rest(self) -> None:
        """Let nobody wait for this trainer until it pulls or pushes, except when all save."""
        self._link.pause()

    def come(self, how: How) -> bool:
        """Let nobody wait for this trainer, which has nothing to train on; with ``trainers.elastic`` wait for all."""
        members = self._members
        if members is None:
            self._link.rest()
            return True
        self._link.settle()  # so that its samples count or are drawn again, whoever dies next
        if how is How.HERE and members.drawn is not None:  # else all reach the same batch, and save there
            self._link.rest()
        generation = members.generation
        while True:
            waiting, trainers = self._round(how, members)
            if members.generation != generation and how is not How.JOINING:
                return False
            everyone = waiting.sum() == trainers
            if everyone and how is How.JOINING:  # else the others wait for this one elsewhere
                return bool(waiting[How.JOINING] == trainers)
            if everyone and not waiting[How.JOINING]:
                return True

    @staticmethod
    def _checkpoints() -> tuple[int, int]:
        """Return the newest agreed checkpoint, and the newest before this trainer joined: -1 if not known yet."""
        library, agreed, before = job.join().library, ctypes.c_int64(), ctypes.c_int64()
        check_status(library, library.mpidata_trainer_agreed_checkpoint(ctypes.byref(agreed), ctypes.byref(before)))
        return agreed.value, before.value

    def _round(self, how: How | None, members: Members) -> tuple[NDArray[np.int64], int]:
        """Wait for all; return the number of waiting trainers, by `How`, and of all trainers. Collective; sleeps."""
        own, totals = np.zeros(1 + max(How), np.int64), [np.zeros(0, np.int64)]
        if how is not None:
            own[how] = 1

        def begin(attempt: Attempt) -> None:
            totals.append(np.zeros_like(own))
            attempt.post(attempt.communicator.Iallreduce, own, totals[-1])

        trainers = members.count
        return (totals[-1], trainers) if members.once(begin, step=True) else (own, -1)

    def _rows(self, number: int, rows: torch.Tensor) -> torch.Tensor:
        """Return rows of an embedding, given by sorted indices."""
        served = self._embeddings[number].served
        ends = np.searchsorted(rows.numpy(), served.bounds(self._link.servers)[1:-1])
        return torch.from_numpy(np.concatenate(self._link.rows(number, np.split(rows.numpy(), ends), served.dim)))

    def _with_rows(self) -> list[Any]:
        """Append the gradients of rows to those of each server's part."""
        servers = self._link.servers
        of_each: list[list[RowGradients]] = [[] for _ in range(servers)]
        for embedding in self._embeddings:
            rows, values = embedding.take_gradients()
            ends = torch.searchsorted(rows, torch.tensor(embedding.served.bounds(servers)[1:-1]))
            for of, *own in zip(of_each, rows.tensor_split(ends), values.tensor_split(ends), strict=True):
                of.append(RowGradients(*own))
        behind = [np.frombuffer(write_gradients(of), np.uint8) for of in of_each]
        return [np.concatenate(both) for both in zip(self._weights.gradients, behind, strict=True)]

    def _be_of(self, trainer: Any) -> None:
        trainer.checkpoints.hold(NAME, self._kept)
        trainer.checkpoints.come_first = self._save
        if self._members is not None:
            self._members.apart, self._members.place_of = self, self._place_of
            self._members.learn = self._ask_and_learn
        trainer.apart = self

    def _place_of(self, trainer: int) -> NDArray[np.int64]:
        assert self._members is not None and isinstance(self._link, Link)
        place = np.zeros_like(self._members.places())
        self._link.lost(trainer, place)
        self._learn()
        return place

    def _ask_and_learn(self) -> None:
        assert self._members is not None and isinstance(self._link, Link)
        self._link.ask_trained(self._members.generation)
        self._learn()
        self._kept.state = {}  # of the last checkpoint, which nobody needs

    def _learn(self) -> None:
        """Record what all trainers have trained on."""
        assert self._members is not None and isinstance(self._link, Link)
        samples, drawn = self._link.trained()
        if self._members.drawn is not None:
            job.join().note_trained(samples, drawn)

    def _save(self) -> bool:
        members = self._members

        def come_away() -> bool:
            return members is not None and (members.one_has_died or members.has_news)

        if (saved := self._link.save(self._checkpoints()[0], come_away)) is None:
            assert members is not None
            members.look()
            self.hear()
            return False
        version, parts = saved
        self._kept.state = {"version": version, **join(parts)} if parts else {}
        if members is not None:
            self._learn()
        return True


class _Kept:
    """The state of the servers in checkpoints: on trainer 0 all of it, as of the last checkpoint."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""
        return self.state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Set the state from a checkpoint."""
        self.state = state

    def take(self, making: Making, servers: int) -> tuple[int, list[State]]:
        """Return the version and each server's part, and drop the state."""
        state, self.state = self.state, {}
        own = [None if weights is None else tuple(weights.shape) for weights in state["weights"]]
        wanted = [(kind.size,) for kind in making.kinds] + [(rows.number, rows.dim) for rows in making.tables]
        if len(own) != len(wanted) or any(one not in (None, other) for one, other in zip(own, wanted, strict=True)):
            raise StreamError(f"{NAME}: the checkpoint is of a model with other parameters. Use the same one.")
        return state["version"], cut(state, making, servers)


def _link() -> Link | Alone:
    if not in_job():
        say_no_job()
        return Alone()
    trainer = job.join()
    if trainer.communicator is None:
        return Alone()
    if trainer.servers is None:
        raise StreamError(
            f"{NAME}: this job has no parameter servers. Add 'servers: {{ranks: 1}}' to the job file, or more."
        )
    return trainer.servers


def _digest(making: Making, parameters: Sequence[torch.Tensor]) -> int:
    shapes = [(parameter.dtype, *parameter.shape) for parameter in parameters]
    settings = sorted(making.settings.items())
    return zlib.crc32(repr((making.optimizer.__name__, making.staleness, settings, shapes, making.tables)).encode())
