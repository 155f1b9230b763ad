"""The user's function: how it is found, what it is called with, and what it must return."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from mpidata.errors import MpidataError
from mpidata.inference.questions import Array

__all__ = ["Function", "FunctionError", "read_weights"]

Tensors = dict[str, torch.Tensor]


class FunctionError(MpidataError):
    """What the function returned does not fit the questions."""


class Function:
    """A function of the job file: ``answer(inputs)`` or ``answer(inputs, weights)``.

    Parameters
    ----------
    name : str
        ``module:function``.

    Attributes
    ----------
    takes_weights : bool
        Whether it has an argument `weights`.

    Raises
    ------
    MpidataError
        There is no such function. What importing its module raises comes as it is.
    """

    def __init__(self, name: str) -> None:
        module, _, attribute = name.partition(":")
        found = getattr(importlib.import_module(module), attribute, None)
        if not callable(found):
            raise MpidataError(f"inference.function is {name!r}, but module {module!r} has no function {attribute!r}.")
        self.name = name
        self._call: Callable[..., Any] = found
        self.takes_weights = "weights" in inspect.signature(found).parameters

    def __call__(self, inputs: Tensors, weights: Tensors | None, outputs: tuple[Array, ...], rows: int) -> Tensors:
        """Call it; returns the outputs that are wanted, on the CPU and contiguous.

        Raises
        ------
        FunctionError
            It returned something else. What it raises itself comes as it is.
        """
        returned = self._call(inputs, weights=weights) if self.takes_weights else self._call(inputs)
        if not isinstance(returned, (dict, Mapping)):  # the first is soon known
            raise FunctionError(f"{self.name} returned {_kind(returned)}. Return a dict of tensors by name.")
        missing = [array.name for array in outputs if array.name not in returned]
        if missing:
            names = ", ".join(repr(name) for name in returned) or "none"
            raise FunctionError(
                f"{self.name} returned no {missing[0]!r}, which a solver asks for. The names that it returned: "
                f"{names:.500}. Return all that solvers ask for."
            )
        return {array.name: self._checked(returned[array.name], array, rows) for array in outputs}

    def _checked(self, tensor: Any, array: Array, rows: int) -> torch.Tensor:
        if (
            isinstance(tensor, torch.Tensor)
            and tensor.shape == (rows, *array.row)
            and tensor.dtype == array.dtype
            and tensor.is_cpu
            and tensor.is_contiguous()
        ):
            return tensor
        said = f"{self.name}, output {array.name!r}:"
        if not isinstance(tensor, torch.Tensor):
            raise FunctionError(f"{said} it is {_kind(tensor)}. Return a tensor.")
        if tuple(tensor.shape) != (rows, *array.row):
            wanted = [rows, *array.row]
            raise FunctionError(
                f"{said} its shape is {list(tensor.shape)}, not {wanted}. Return a row for each row of the inputs, of "
                "the shape that the solver asks for."
            )
        if tensor.dtype != array.dtype:
            raise FunctionError(f"{said} its dtype is {tensor.dtype}, but solvers ask for {array.dtype}. Convert it.")
        return tensor.detach().to("cpu").contiguous()


def read_weights(path: str) -> Tensors:
    """Read the file of `inference.weights`; raises MpidataError if it cannot be read, or holds no dict of tensors."""
    try:
        read = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds
        raise MpidataError(f"inference.weights, {path}, cannot be read: {type(error).__name__}: {error}") from None
    if not isinstance(read, Mapping) or not all(isinstance(tensor, torch.Tensor) for tensor in read.values()):
        raise MpidataError(
            f"inference.weights, {path}, holds no dict of tensors. Write it by torch.save(net.state_dict(), ...)."
        )
    return dict(read)


def _kind(value: object) -> str:
    return f"an object of {type(value).__name__}"
