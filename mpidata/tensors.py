"""Torch tensors that share memory with NumPy arrays, in the dtypes of fields."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import torch

from mpidata.dtypes import BFLOAT16

__all__ = ["WEIGHT", "array_of", "number_tensor", "part_weights", "tensor_of"]

WEIGHT = "weight"
"""Name of the tensor with the weights of samples, which are sent as the last parameter."""


def tensor_of(array: npt.NDArray[Any], dtype: str) -> torch.Tensor:
    """Return the tensor over an array of `numpy_dtype(dtype)`."""
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if dtype == BFLOAT16 else tensor


def array_of(tensor: torch.Tensor) -> npt.NDArray[Any]:
    """Return the array over a CPU tensor, in the `numpy_dtype` of its dtype."""
    bits = tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor
    array: npt.NDArray[Any] = bits.numpy()
    return array


def number_tensor(value: bool | int | float) -> torch.Tensor:
    """Make a bool, int64 or float64 tensor without dimensions, in CPU memory whatever torch's defaults are."""
    dtype = {bool: torch.bool, int: torch.int64, float: torch.float64}[type(value)]
    return torch.tensor(value, dtype=dtype, device="cpu")


def part_weights(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Split the weights of a batch or sample from its parameters: ``parameters``, [B, n], ``weight``, [B] float32."""
    parameters = tensors["parameters"]
    return tensors | {"parameters": parameters[..., :-1], WEIGHT: parameters[..., -1].float()}
