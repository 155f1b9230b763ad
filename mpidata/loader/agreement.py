"""What trainers that share a dataset must ask for likewise: its loaders compare, and refuse who differs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from mpidata.errors import StreamError
from mpidata.loader.transport import Kind, Request, Requests, Status

__all__ = ["Agreements", "Item", "hashed", "pack_agreement", "raise_disagreement"]

Item = tuple[str, str]
"""What is compared, and what a sentence says of it."""


def hashed(values: Iterable[Any], shown: str) -> Item:
    """Compare many values by a hash of their texts."""
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        digest.update(f"{value}\0".encode(errors="surrogateescape"))
    return digest.hexdigest(), shown


def pack_agreement(dataset: str, items: Mapping[str, Any]) -> bytes:
    """Make what goes to the loaders.

    Parameters
    ----------
    dataset : str
        Its name, the same on all trainers.
    items : mapping
        By the names of arguments or attributes: values, which are compared by their texts, or an `Item`.
    """
    pairs = {name: value if isinstance(value, tuple) else (repr(value),) * 2 for name, value in items.items()}
    return json.dumps([dataset, pairs]).encode(errors="surrogatepass")


def raise_disagreement(sentence: memoryview) -> None:
    """Raise what a loader has said."""
    raise StreamError(bytes(sentence).decode())


class Agreements:
    """What trainers ask for, on a loader; a worker of `serve`.

    Parameters
    ----------
    requests : Requests
        To answer to.
    """

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._asked: dict[tuple[int, int], tuple[str, dict[str, Item]]] = {}

    def take(self, request: Request) -> bool:
        """Compare with what others ask for; says nothing where it is the same."""
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
                    f"{trainer} has {_shown(other, name)}. Ask for the same on all trainers: share=True deals the "
                    "samples out by itself. Or give share=False, and each gets all that it asks for."
                )
                self._requests.answer(request, Status.EXCEPTION, sentence.encode(errors="replace"))
                break
        self._asked[request.trainer, request.dataset] = dataset, own
        return True

    def work(self) -> bool:
        """There is never anything to do."""
        return False


def _different(own: dict[str, Item], other: dict[str, Item]) -> str | None:
    return next((name for name in {**own, **other} if own.get(name, ("",))[0] != other.get(name, ("",))[0]), None)


def _shown(items: dict[str, Item], name: str) -> str:
    return items[name][1] if name in items else "none"
