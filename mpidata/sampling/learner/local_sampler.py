"""A job's sampler that learns, as its thread calls it: in this process, or by the same methods on a learner."""

from __future__ import annotations

import base64
import inspect
import pickle
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mpidata.config import Job
from mpidata.sampling.drawing import Drawn, ask, make_sampler, sampler_code
from mpidata.sampling.learner.published import Contents, Published, read

__all__ = ["Begun", "Sampling", "LocalSampling"]

Losses = dict[str, NDArray[Any]]


class Begun(NamedTuple):
    """Where a sampler starts.

    Attributes
    ----------
    state : str or None
        The value of `Sampling.state`; None for a new sampler.
    rows : ndarray, float64, shape (n, number of the job's `columns`)
        What it had drawn after that, which remains.
    """

    state: str | None
    rows: NDArray[np.float64]


class Sampling(Protocol):
    """The methods of a sampler that a learner needs. All raise MpidataError if it fails, and may take long.

    Attributes
    ----------
    takes_published : bool
        Whether `observe` takes what is published; known after `begin`.
    state : str or None
        State of the sampler after the last call; None if it has none.
    """

    takes_published: bool
    state: str | None

    def begin(self, begun: Begun) -> None:
        """Create the sampler, and restore its position."""

    def observe(
        self, ids: NDArray[np.int64], parameters: NDArray[np.float64], losses: Losses, published: Contents | None
    ) -> None:
        """Pass losses to the sampler."""

    def draw(self, count: int) -> Drawn:
        """Let the sampler draw `count` simulations."""

    def rest(self) -> None:
        """Note that there is nothing more to do for now."""


class LocalSampling:
    """The sampler in this process; the methods of `Sampling`."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._sampler: Any = None
        self._published: Published | None = None
        self.takes_published = False
        self.state: str | None = None

    def begin(self, begun: Begun) -> None:
        """Restore the sampler's position, also past the rows that were drawn after its state was kept."""
        self._sampler = sampler = make_sampler(self._job)
        with sampler_code(self._job):
            self.takes_published = "published" in inspect.signature(sampler.observe).parameters
        if begun.state is not None:
            with sampler_code(self._job):
                sampler.load_state_dict(pickle.loads(base64.b64decode(begun.state)))
        if len(begun.rows):
            self._pass(begun.rows)
        self._remember()

    def _pass(self, rows: NDArray[np.float64]) -> None:
        if callable(getattr(self._sampler, "skip", None)):
            with sampler_code(self._job):
                self._sampler.skip(rows[:, : len(self._job.parameter_names)].copy())
            return
        for first in range(0, len(rows), self._job.generation):
            ask(self._job, self._sampler, min(self._job.generation, len(rows) - first))

    def observe(
        self, ids: NDArray[np.int64], parameters: NDArray[np.float64], losses: Losses, published: Contents | None
    ) -> None:
        """Pass losses to the sampler."""
        more: dict[str, Any] = {}
        if self.takes_published:
            if published is not None and (self._published is None or self._published.version != published.version):
                self._published = read(published)
            more["published"] = self._published
        with sampler_code(self._job):
            self._sampler.observe(ids, parameters, losses, **more)
        self._remember()

    def draw(self, count: int) -> Drawn:
        """Let the sampler draw `count` simulations."""
        drawn = ask(self._job, self._sampler, count)
        self._remember()
        return drawn

    def rest(self) -> None:
        """Do nothing."""

    def _remember(self) -> None:
        if not hasattr(self._sampler, "state_dict"):
            return
        with sampler_code(self._job):
            self.state = base64.b64encode(pickle.dumps(self._sampler.state_dict())).decode()
