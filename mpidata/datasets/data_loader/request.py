"""The arguments of a DataLoader with share=True, which must be the same on all trainers."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset

from mpidata.loading.agreement import Item, hashed, pack_agreement
from mpidata.trainer.loader_access import Place

__all__ = ["Asked"]

_LOOKED_AT, _MOST = 64, 1 << 16  # entries that are compared: of an array, and about as many of a list


class Asked:
    """The arguments of a DataLoader that must be the same on all trainers.

    Parameters
    ----------
    place : Place
        Of this trainer; its DataLoaders with share=True are numbered in the order of their creation.
    batch_size, shuffle, drop_last
        As given.
    """

    def __init__(self, place: Place, batch_size: int | None, shuffle: bool, drop_last: bool) -> None:
        self._number, self._sent = place.shared["DataLoader"], 0
        place.shared["DataLoader"] += 1
        self._items = {"batch_size": batch_size, "shuffle": shuffle, "drop_last": drop_last}

    def agreement(self, dataset: Any, seed: int | None) -> bytes:
        """Return the message that the loaders compare; called whenever the dataset is sent."""
        name = f"DataLoader {self._number}" + (f", sent again ({self._sent})" if self._sent else "")
        self._sent += 1
        seeds = {"seed": seed} if self._items["shuffle"] else {}
        return pack_agreement(name, {**_dataset(dataset), **self._items, **seeds})


def _dataset(dataset: Any, deep: int = 3) -> dict[str, Any]:
    """Describe a dataset: its class, length, and the lists of names or numbers that indices refer to."""
    if isinstance(dataset, str):
        return {"dataset": dataset}
    items: dict[str, Any] = {"dataset": (type(dataset).__qualname__,) * 2}
    if hasattr(dataset, "__len__"):
        items["len(dataset)"] = len(dataset)
    for name, value in _attributes(dataset).items():
        if isinstance(value, Dataset) and deep:
            items |= {f"{name}: {inner}": item for inner, item in _dataset(value, deep - 1).items()}
        elif (item := _index_of(dataset, value)) is not None:
            items[name] = item
    return items


def _attributes(dataset: Any) -> dict[str, Any]:
    """Return what may list a dataset's samples: itself, its attributes, and the datasets it consists of."""
    own = vars(dataset) if isinstance(dataset, Dataset) else {}
    named = {"dataset[...]": dataset} if isinstance(dataset, (list, tuple)) else {}
    of_type = type(dataset).__name__ if isinstance(dataset, (Subset, ConcatDataset, TensorDataset)) else "dataset"
    for name, value in own.items():
        named[f"{of_type}.{name}"] = value
        if isinstance(value, (list, tuple)) and all(isinstance(part, (Dataset, torch.Tensor)) for part in value):
            named |= {f"{of_type}.{name}[{i}]": part for i, part in enumerate(value)}
    return named


def _index_of(dataset: Any, value: Any) -> Item | None:
    """Describe a list or array with an entry for each sample; None for anything else and for arrays of objects."""
    arrays = isinstance(value, (np.ndarray, torch.Tensor))
    if not arrays and not isinstance(value, (range, list, tuple)):
        return None
    if isinstance(value, torch.Tensor) and (value.layout is not torch.strided or value.is_nested or value.is_quantized):
        return None
    if (arrays and not value.ndim) or not hasattr(dataset, "__len__") or len(value) != len(dataset):
        return None
    if isinstance(value, np.ndarray) and (value.dtype.hasobject or value.dtype.kind in "US"):
        value = value.tolist()
    if isinstance(value, (range, list, tuple)):
        step = max(1, len(value) // _MOST)
        return _listed(value[::step], len(value)) if all(map(_is_name, value[::step])) else None
    places = sorted({(len(value) - 1) * i // (_LOOKED_AT - 1) for i in range(_LOOKED_AT)}) if len(value) else []
    return hashed([_bytes(value[i]) for i in places], f"of shape {tuple(value.shape)}")


def _bytes(entry: Any) -> bytes:
    if isinstance(entry, torch.Tensor):
        return entry.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return np.asarray(entry).tobytes()


def _is_name(value: Any) -> bool:
    if isinstance(value, tuple):  # for example a file and its label
        return all(map(_is_name, value))
    return isinstance(value, (str, os.PathLike, int, np.integer))


def _listed(values: Iterable[Any], of: int) -> Item:
    names = [_base(value) for value in values]
    shown = ", ".join(map(str, names[:4])) + (", ..." if of > 4 else "")
    return hashed(names, f"[{shown}] ({of})")


def _base(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_base, value))
    return os.path.basename(value) if isinstance(value, (str, os.PathLike)) else int(value)
