"""A job's sampler that learns, as its thread calls it: here, or by the same methods on a rank of its own."""

from __future__ import annotations

import base64
import inspect
import pickle
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mpidata.config import Job
from mpidata.sampling.drawing import Drawn, ask, make_sampler, sampler_code
from mpidata.sampling.learner.published import Contents, Published, read

__all__ = ["Begun", "Sampling", "SamplingHere"]

Losses = dict[str, NDArray[Any]]


class Begun:
    """Where a sampler begins: `state`, as it had drawn `drawn` simulations, and how many it is to draw again.

    Parameters
    ----------
    state : str or None
        What `Sampling.state` gave; None: it is new.
    drawn : int
        How many it had drawn then.
    final : int
        How many are drawn in all, which it draws again as far as its state does not know.
    """

    def __init__(self, state: str | None, drawn: int, final: int) -> None:
        self.state, self.drawn, self.final = state, drawn, final


class Sampling(Protocol):
    """What a learner needs of a sampler. All raise MpidataError where it fails, and may take long.

    Attributes
    ----------
    takes_published : bool
        Whether `observe` wants to know what is published; from `begin` on.
    state : str or None
        Of the sampler, since the last call; None where it has none.
    """

    takes_published: bool
    state: str | None

    def begin(self, begun: Begun) -> None:
        """Make the sampler, and bring it to where it was."""

    def observe(
        self, ids: NDArray[np.int64], parameters: NDArray[np.float64], losses: Losses, published: Contents | None
    ) -> None:
        """Tell it of losses."""

    def draw(self, count: int) -> Drawn:
        """Have it draw so many simulations."""

    def rest(self) -> None:
        """Note that nothing more is to be done for now."""


class SamplingHere:
    """The sampler in this process; the methods of `Sampling`."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._sampler: Any = None
        self._published: Published | None = None
        self.takes_published = False
        self.state: str | None = None

    def begin(self, begun: Begun) -> None:
        """Bring the sampler to where it was, also behind what it drew after its state was kept: that is final."""
        self._sampler = sampler = make_sampler(self._job)
        with sampler_code(self._job):
            self.takes_published = "published" in inspect.signature(sampler.observe).parameters
        if begun.state is not None:
            with sampler_code(self._job):
                sampler.load_state_dict(pickle.loads(base64.b64decode(begun.state)))
        before = begun.drawn if begun.state is not None else 0
        while before < begun.final:
            count = min(self._job.generation, begun.final - before)
            ask(self._job, sampler, count)
            before += count
        self._remember()

    def observe(
        self, ids: NDArray[np.int64], parameters: NDArray[np.float64], losses: Losses, published: Contents | None
    ) -> None:
        """Tell it of losses."""
        more: dict[str, Any] = {}
        if self.takes_published:
            if published is not None and (self._published is None or self._published.version != published.version):
                self._published = read(published)
            more["published"] = self._published
        with sampler_code(self._job):
            self._sampler.observe(ids, parameters, losses, **more)
        self._remember()

    def draw(self, count: int) -> Drawn:
        """Have it draw so many simulations."""
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
