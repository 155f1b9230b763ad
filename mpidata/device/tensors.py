"""Replace each tensor of a batch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

import torch

from mpidata.errors import StreamError

__all__ = ["map_tensors"]

_Move = Callable[[torch.Tensor], torch.Tensor]


def map_tensors(batch: Any, move: _Move) -> Any:
    """Return a batch with each of its tensors replaced.

    Parameters
    ----------
    batch : object
        Tensors in mappings, lists and tuples, including named tuples. Everything else stays.
    move : callable
        Gets each dense tensor, and returns its replacement. Of a nested tensor it gets the values and the offsets.

    Raises
    ------
    StreamError
        A tensor is sparse or quantized, or in an object of another kind.
    """
    if isinstance(batch, torch.Tensor):
        return _moved(batch, move)
    if isinstance(batch, Mapping):
        return _like(batch, {key: map_tensors(value, move) for key, value in batch.items()})
    if isinstance(batch, (list, tuple)) and not hasattr(batch, "to"):  # torch's PackedSequence keeps a part on the CPU
        values = [map_tensors(value, move) for value in batch]
        return type(batch)(*values) if hasattr(batch, "_fields") else type(batch)(values)
    if _holds_tensors(batch):
        raise StreamError(
            f"The batch has a {type(batch).__name__}, whose tensors cannot be copied to a device ahead of the loop. "
            "Have collate_fn return tensors in dicts, lists and tuples, or leave device out and move the batch in the "
            "loop."
        )
    return batch


def _moved(tensor: torch.Tensor, move: _Move) -> torch.Tensor:
    if tensor.is_nested and tensor.layout is torch.jagged:
        jagged: Any = tensor
        values, offsets = move(jagged.values()), move(jagged.offsets())
        nested: torch.Tensor = torch.nested.nested_tensor_from_jagged(values, offsets, jagged_dim=jagged._ragged_idx)
        return nested
    if tensor.is_nested or tensor.layout is not torch.strided or tensor.is_quantized:
        raise StreamError(
            f"The batch has a tensor of layout {str(tensor.layout).removeprefix('torch.')}, which cannot be copied to "
            "a device ahead of the loop. Give dense tensors, or leave device out and move the batch in the loop."
        )
    return move(tensor)


def _like(batch: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    """Make a mapping of the batch's type."""
    if type(batch) is dict:
        return values
    if isinstance(batch, MutableMapping):
        made = copy.copy(batch)
        made.update(values)
        return made
    return type(batch)(values)  # type: ignore[call-arg]


def _holds_tensors(thing: Any) -> bool:
    own = getattr(thing, "__dict__", {}).values()
    return hasattr(thing, "to") or any(isinstance(value, torch.Tensor) for value in own)
