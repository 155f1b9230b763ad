"""What a DataLoader with share=True asks for, as the other trainers must, too."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, Subset

from mpidata.loader.agreement import Item, hashed, pack_agreement
from mpidata.trainer.place import Place

__all__ = ["Asked"]


class Asked:
    """The arguments of a DataLoader that are to be the same on all trainers.

    Parameters
    ----------
    place : Place
        Of this trainer; its DataLoaders with share=True are numbered in the order in which they are made.
    batch_size, shuffle, drop_last
        As given.
    """

    def __init__(self, place: Place, batch_size: int | None, shuffle: bool, drop_last: bool) -> None:
        self._number, self._sent = place.shared["DataLoader"], 0
        place.shared["DataLoader"] += 1
        self._items = {"batch_size": batch_size, "shuffle": shuffle, "drop_last": drop_last}

    def agreement(self, dataset: Any, seed: int | None) -> bytes:
        """Make what the loaders compare; anew whenever the dataset is sent."""
        name = f"DataLoader {self._number}" + (f", sent again ({self._sent})" if self._sent else "")
        self._sent += 1
        seeds = {"seed": seed} if self._items["shuffle"] else {}
        return pack_agreement(name, {**_dataset(dataset), **self._items, **seeds})


def _dataset(dataset: Any) -> dict[str, Any]:
    """Describe a dataset: its class, length, and the lists of names or numbers that its indices go through."""
    if isinstance(dataset, str):
        return {"dataset": dataset}
    items: dict[str, Any] = {"dataset": (type(dataset).__qualname__,) * 2}
    if hasattr(dataset, "__len__"):
        items["len(dataset)"] = len(dataset)
    if isinstance(dataset, Subset):
        items["Subset.indices"] = _listed(dataset.indices)
        within = _dataset(dataset.dataset)
        return items | {f"Subset.dataset: {name}": item for name, item in within.items()}
    of_self = {"dataset[...]": dataset} if isinstance(dataset, (list, tuple)) else {}
    own = {f"dataset.{name}": value for name, value in vars(dataset).items()} if isinstance(dataset, Dataset) else {}
    for name, value in (of_self | own).items():
        if (item := _index_of(dataset, value)) is not None:
            items[name] = item
    return items


def _index_of(dataset: Any, value: Any) -> Item | None:
    """Describe a list of names or whole numbers, one for each sample; None for anything else."""
    if isinstance(value, (np.ndarray, torch.Tensor)):
        whole = value.ndim == 1 and not (
            value.dtype.is_floating_point if torch.is_tensor(value) else value.dtype.kind not in "iu"
        )
        value = value.tolist() if whole and len(value) == len(dataset) else None
    if not isinstance(value, (list, tuple)) or not hasattr(dataset, "__len__") or len(value) != len(dataset):
        return None
    if not all(isinstance(entry, (str, os.PathLike, int)) for entry in value):
        return None
    return _listed(value)


def _listed(values: Iterable[Any]) -> Item:
    names = [os.path.basename(v) if isinstance(v, (str, os.PathLike)) else v for v in map(_plain, values)]
    shown = ", ".join(map(str, names[:4])) + (", ..." if len(names) > 4 else "")
    return hashed(names, f"[{shown}] ({len(names)})")


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, (np.generic, torch.Tensor)) else value
