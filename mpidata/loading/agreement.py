"""The arguments that must be the same on all trainers that share a dataset: the loaders compare them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from mpidata.errors import StreamError

__all__ = ["Item", "hashed", "pack_agreement", "raise_disagreement"]

Item = tuple[str, str]
"""The value that is compared, and its text for error messages."""


def hashed(values: Iterable[Any], shown: str) -> Item:
    """Return an item that compares many values by a hash of their texts."""
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        digest.update(f"{value}\0".encode(errors="surrogateescape"))
    return digest.hexdigest(), shown


def pack_agreement(dataset: str, items: Mapping[str, Any]) -> bytes:
    """Return the message to the loaders.

    Parameters
    ----------
    dataset : str
        Name of the dataset, the same on all trainers.
    items : mapping
        By the names of arguments or attributes: values, which are compared by their texts, or an `Item`.
    """
    pairs = {name: value if isinstance(value, tuple) else (repr(value),) * 2 for name, value in items.items()}
    return json.dumps([dataset, pairs]).encode(errors="surrogatepass")


def raise_disagreement(sentence: memoryview) -> None:
    """Raise StreamError with the message of a loader."""
    raise StreamError(bytes(sentence).decode())
