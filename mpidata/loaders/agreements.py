"""Loaders compare the arguments of the trainers that share a dataset, and refuse a trainer that differs."""

from __future__ import annotations

import json

from mpidata.loading.agreement import Item
from mpidata.loading.transport import Kind, Request, Requests, Status

__all__ = ["Agreements"]


class Agreements:
    """The arguments of trainers, on a loader; a worker of `serve`.

    Parameters
    ----------
    requests : Requests
        To answer to.
    """

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._asked: dict[tuple[int, int], tuple[str, dict[str, Item]]] = {}

    def take(self, request: Request) -> bool:
        """Compare the arguments with those of other trainers; answers only if they differ."""
        if request.kind == Kind.FORGET and not len(request.payload):
            self._asked.pop((request.trainer, request.dataset), None)
        if request.kind != Kind.AGREE:
            return False
        dataset, pairs = json.loads(bytes(request.payload))
        own = {name: (key, shown) for name, (key, shown) in pairs.items()}
        for (trainer, _), (of, other) in self._asked.items():
            if of == dataset and trainer != request.trainer and (name := _different(own, other)):
                sentence = (
                    f"{dataset}, share=True: trainer {request.trainer} has {name} {_shown(own, name)}, but trainer "
                    f"{trainer} has {_shown(other, name)}. Request the same on all trainers: share=True divides the "
                    "samples by itself. Or give share=False: then each trainer gets everything that it requests."
                )
                self._requests.answer(request, Status.EXCEPTION, sentence.encode(errors="replace"))
                break
        self._asked[request.trainer, request.dataset] = dataset, own
        return True

    def work(self) -> bool:
        """Do nothing: `take` does all the work."""
        return False


def _different(own: dict[str, Item], other: dict[str, Item]) -> str | None:
    return next((name for name in {**own, **other} if own.get(name, ("",))[0] != other.get(name, ("",))[0]), None)


def _shown(items: dict[str, Item], name: str) -> str:
    return items[name][1] if name in items else "none"
