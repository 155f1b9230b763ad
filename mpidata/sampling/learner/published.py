"""What trainers have published, for a sampler: requested when it is to observe losses, and read as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from mpidata.dtypes import array_dtype
from mpidata.native.structures import described_in

__all__ = ["Contents", "Newest", "Published", "read"]


class Contents(NamedTuple):
    """A version as it is sent: its number, and memory in the layout of `mpidata_contents`."""

    version: int
    memory: memoryview


class Published(Mapping[str, npt.NDArray[Any]]):
    """Arrays by name, and `version`, the number that `mpidata.publish` has returned for them."""

    def __init__(self, version: int, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.version = version
        self._arrays = arrays

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Return an array, which must not be modified."""
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, in the order in which they were published."""
        return iter(self._arrays)

    def __len__(self) -> int:
        """Count the arrays."""
        return len(self._arrays)


def read(contents: Contents | None) -> Published | None:
    """Return a version as arrays, which keep its memory alive; None if there is none."""
    if contents is None:
        return None
    memory = contents.memory.toreadonly()
    arrays = {}
    for one in described_in(memory):
        dtype, count = array_dtype(one.dtype), int(np.prod(one.shape, dtype=np.int64))
        flat = np.frombuffer(memory, dtype, count, one.at) if count else np.empty(0, dtype)
        arrays[one.name] = flat.reshape(one.shape)
    return Published(contents.version, arrays)


class Asking(Protocol):
    """The source of versions; two methods of the scheduler's messages."""

    def ask_published(self, version: int) -> None:
        """Ask the trainers for what is newer than this version."""

    def published(self) -> tuple[int, memoryview] | None | bool:
        """Take the answer: version and contents, None if nothing is newer, False if none has arrived."""


class Newest:
    """The newest version, requested before each use; older ones are not kept.

    Parameters
    ----------
    trainers : Asking
        The trainers, which publish.

    Attributes
    ----------
    contents : Contents or None
        The last version received; None if nothing was published so far.
    """

    def __init__(self, trainers: Asking) -> None:
        self._trainers = trainers
        self._asked = False
        self.contents: Contents | None = None

    def is_here(self) -> bool:
        """Whether `contents` was the newest at some time since the last True; sends a request if needed."""
        if not self._asked:
            self._trainers.ask_published(self.contents.version if self.contents else 0)
            self._asked = True
        answer = self._trainers.published()
        if isinstance(answer, bool):
            return False
        if answer is not None:
            self.contents = Contents(*answer)
        self._asked = False
        return True
