"""Join samples whose fields differ in length: concatenate them along these lengths."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import ConcatDataset, Dataset, Subset, default_collate

from mpidata.errors import StreamError
from mpidata.run.plan import Field
from mpidata.tensors import number_tensor

__all__ = ["PackedCollate", "check_constants", "join_fields", "number_tensors", "refuse_fetcher", "refuse_stacking"]

_FRAMES = 8


class PackedCollate:
    """Joins single samples into a batch, as a stream does: ``DataLoader(..., collate_fn=PackedCollate(data.fields))``.

    For samples of a RecordedDataset, of a stream without `batch_size`, and of its validation samples.

    Parameters
    ----------
    fields : mapping of str to Field
        The `fields` of the dataset or the stream.

    Raises
    ------
    StreamError
        When called: a sample lacks a length.

    Notes
    -----
    A field whose shape contains a name, ``[nodes, 2]``, becomes ``[sum, 2]`` in a batch of B samples, which are joined
    along that dimension. The batch has ``nodes``, ``[B]`` int64, and ``nodes_offsets``, ``[B + 1]`` int64, the start of
    each sample. The values of `index` fields count along the joined samples. With windows of W steps the shapes are
    ``[B, W]`` and ``[B * W + 1]``. torch's ``default_collate`` stacks everything else, including what was added to the
    samples. A batch of windows has fields with ``per: simulation`` only if the dataset has ``constants="batch"``.
    """

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self._fields = tuple(fields.values())
        self._lengths = tuple(dict.fromkeys(field.length for field in self._fields if field.length))

    def __call__(self, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the batch."""
        lengths = [self._of_all(name, samples) for name in self._lengths]
        totals = {
            name: of.reshape(len(samples), -1).sum(axis=1) for name, of in zip(self._lengths, lengths, strict=True)
        }
        once = [field for field in self._fields if field.per_simulation and field.name in samples[0]]
        apart = [field.name for field in once if any(_is_apart(field, sample) for field in once for sample in samples)]
        there = [field for field in self._fields if field.name in samples[0] and field.name not in apart]
        joined: dict[str, Any] = join_fields(there, samples, totals)
        joined |= number_tensors(self._lengths, lengths, len(lengths))
        left_out = {*joined, *apart, *(f"{name}_given" for name in apart)}
        rest: dict[str, Any] = default_collate(
            [{name: value for name, value in sample.items() if name not in left_out} for sample in samples]
        )
        return joined | rest

    def _of_all(self, name: str, samples: Sequence[Mapping[str, Any]]) -> npt.NDArray[np.int64]:
        if any(name not in sample for sample in samples):
            raise StreamError(
                f"PackedCollate: a sample has no {name!r}, the length of its fields. Keep it in the dict."
            )
        of_all: npt.NDArray[np.int64] = np.stack([np.asarray(sample[name]) for sample in samples])
        return of_all


def check_constants(constants: Any) -> None:
    """Raise StreamError if a dataset's argument `constants` is neither "apart" nor "batch"."""
    if constants not in ("apart", "batch"):
        raise StreamError(f"constants={constants!r} is neither 'apart' nor 'batch'. Give one of them, or leave it out.")


def _is_apart(field: Field, sample: Mapping[str, Any]) -> bool:
    """Return whether a window of several steps has a field with ``per: simulation`` once, not for each step.

    Also false if the field is empty, because both cases then look alike.
    """
    if not np.ndim(sample["step"]):
        return False
    values = sample[field.name]
    if not field.length:
        return bool(values.ndim == len(field.shape))
    return bool(values.shape[field.shape.index(field.length)] != int(np.sum(np.asarray(sample[field.length]))))


def number_tensors(
    names: Sequence[str], numbers: Sequence[npt.NDArray[np.int64]] | npt.NDArray[np.int64], n_lengths: int
) -> dict[str, torch.Tensor]:
    """Make the tensors of a batch from its samples' numbers: first the lengths, then flags of optional fields.

    `<length>` is [B] (or [B, W]) int64, `<length>_offsets` is [B + 1] (or [B * W + 1]) int64, and the others,
    `<field>_given` of optional fields, are bool, shaped as the lengths. A single sample of one step has no offsets.
    """
    tensors: dict[str, Any] = {}
    for place, (name, of) in enumerate(zip(names, numbers, strict=True)):
        if place >= n_lengths:
            tensors[name] = torch.from_numpy(np.asarray(of != 0))
            continue
        tensors[name] = torch.from_numpy(of) if of.ndim else number_tensor(int(of))
        if of.ndim:
            offsets = np.zeros(of.size + 1, np.int64)
            np.cumsum(of, out=offsets[1:])
            tensors[f"{name}_offsets"] = torch.from_numpy(offsets)
    return tensors


def join_fields(
    fields: Sequence[Field], samples: Sequence[Mapping[str, torch.Tensor]], lengths: Mapping[str, npt.NDArray[np.int64]]
) -> dict[str, torch.Tensor]:
    """Join the fields of samples, or of the steps of a window, of lengths (n,) int64; stack fields without a length."""
    joined = {}
    for field in fields:
        parts = [sample[field.name] for sample in samples]
        if field.index:
            before = np.cumsum(lengths[field.index]) - lengths[field.index]
            parts = [part + int(by) for part, by in zip(parts, before, strict=True)]
        joined[field.name] = torch.cat(parts, field.shape.index(field.length)) if field.length else torch.stack(parts)
    return joined


def refuse_stacking(dataset: Dataset[Any], lengths: Sequence[str], fields: str) -> None:
    """Raise StreamError if a DataLoader would stack the requested sample; for a dataset's `__getitem__`.

    `fields` is the expression by which a script gets them. A dataset does not know who requests a sample, so this
    inspects the callers.
    """
    frame = sys._getframe(2) if lengths else None
    for _ in range(_FRAMES):
        if frame is None:
            return
        if frame.f_code.co_name == "fetch":  # only here, as f_locals keeps the values of all variables alive
            refuse_fetcher(frame.f_locals.get("self"), dataset, lengths, fields)
            return
        frame = frame.f_back


def refuse_fetcher(fetcher: Any, dataset: Dataset[Any], lengths: Sequence[str], fields: str) -> None:
    """Raise StreamError if a DataLoader with this fetcher would stack samples of the dataset."""
    stacks = getattr(fetcher, "auto_collation", False) and getattr(fetcher, "collate_fn", None) is default_collate
    if lengths and stacks and _holds(fetcher.dataset, dataset):
        raise StreamError(
            f"A DataLoader with a batch_size stacks the samples of {type(dataset).__name__}, but each of them has its "
            f"own {lengths[0]!r}. Give the DataLoader collate_fn=mpidata.PackedCollate({fields}), which joins them."
        )


def _holds(dataset: object, other: object) -> bool:
    if isinstance(dataset, Subset):
        return _holds(dataset.dataset, other)
    if isinstance(dataset, ConcatDataset):
        return any(_holds(one, other) for one in dataset.datasets)
    return dataset is other
