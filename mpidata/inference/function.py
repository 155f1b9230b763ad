"""The user's function: finding and calling it, and checking its results."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import torch

from mpidata.errors import MpidataError
from mpidata.inference.questions import Array

__all__ = ["Function", "FunctionError", "read_weights"]

Tensors = dict[str, torch.Tensor]


class FunctionError(MpidataError):
    """The result of the function does not fit the questions."""


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
        There is no such function, or it cannot be called this way. Exceptions of importing its module pass through.
    """

    def __init__(self, name: str) -> None:
        module, _, attribute = name.partition(":")
        found = getattr(importlib.import_module(module), attribute, None)
        said = f"inference.function is {name!r}, but"
        if found is None:
            raise MpidataError(f"{said} module {module!r} has no function {attribute!r}.")
        if not callable(found) or inspect.iscoroutinefunction(found):
            kind = "a coroutine function" if callable(found) else _kind(found)
            raise MpidataError(f"{said} that is {kind}. Name a function: def answer(inputs).")
        self.name = name
        self._call: Callable[..., Any] = found
        self.takes_weights = _takes_weights(found, said)
        self._process = os.getpid()

    def __call__(
        self, inputs: Tensors, weights: Tensors | None, outputs: tuple[Array, ...], rows: int
    ) -> list[torch.Tensor]:
        """Call it; returns the requested outputs, in order, on the CPU and contiguous.

        Raises
        ------
        FunctionError
            The function returned something else. Exceptions of the function pass through.
        """
        try:
            returned = self._call(inputs, weights=weights) if self.takes_weights else self._call(inputs)
        finally:
            if os.getpid() != self._process:
                self._end_child()
        if not isinstance(returned, (dict, Mapping)):  # the check for dict is faster
            raise FunctionError(f"{self.name} returned {_kind(returned)}. Return a dict of tensors by name.")
        found = []
        for array in outputs:
            tensor = returned[array.name] if array.name in returned else self._missing(returned, array.name)
            if not (
                isinstance(tensor, torch.Tensor)
                and tensor.shape == (rows, *array.row)
                and tensor.dtype is array.dtype
                and tensor.is_cpu
                and tensor.is_contiguous()
                and not tensor.is_conj()  # otherwise its memory does not have its values
                and not tensor.is_neg()
            ):
                tensor = self._converted(tensor, array, rows)
            found.append(tensor)
        return found

    def _end_child(self) -> None:
        """End a process that the function has forked, which must not continue as this rank: MPI survives no fork."""
        error = sys.exc_info()[1]
        if isinstance(error, SystemExit) and not error.code:
            os._exit(0)
        what = f"raised {type(error).__name__}: {error}" if error else "returned"
        print(
            f"mpidata: a process that {self.name} has forked {what}, and ends. End such a process with os._exit().",
            file=sys.stderr,
            flush=True,
        )
        os._exit(1)

    def _missing(self, returned: Mapping[str, Any], name: str) -> NoReturn:
        names = ", ".join(repr(name) for name in returned) or "none"
        raise FunctionError(
            f"{self.name} returned no {name!r}, which a solver requests. The names that it returned: {names:.500}. "
            "Return all arrays that solvers request."
        )

    def _converted(self, tensor: object, array: Array, rows: int) -> torch.Tensor:
        said = f"{self.name}, output {array.name!r}:"
        if not isinstance(tensor, torch.Tensor):
            raise FunctionError(f"{said} it is {_kind(tensor)}. Return a tensor.")
        if tuple(tensor.shape) != (rows, *array.row):
            wanted = [rows, *array.row]
            raise FunctionError(
                f"{said} its shape is {list(tensor.shape)}, not {wanted}. Return a row for each row of the inputs, of "
                "the shape that the solver requests."
            )
        if tensor.dtype != array.dtype:
            raise FunctionError(f"{said} its dtype is {tensor.dtype}, but solvers request {array.dtype}. Convert it.")
        if not _is_dense(tensor):
            raise FunctionError(f"{said} it is {_kind_of_tensor(tensor)}. Return a dense tensor, with values.")
        return tensor.detach().to("cpu").resolve_conj().resolve_neg().contiguous()


def read_weights(path: str) -> Tensors:
    """Read the file of `inference.weights`; raises MpidataError if it cannot be read or is not a dict of tensors."""
    said, advice = f"inference.weights, {path},", "Write it with torch.save(net.state_dict(), ...)."
    try:
        read = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise MpidataError(f"{said} cannot be read: {type(error).__name__}: {error}") from None
    except Exception as error:  # torch raises many kinds, whose advice does not apply here
        raise MpidataError(f"{said} does not only contain tensors ({type(error).__name__}). {advice}") from None
    if not isinstance(read, Mapping):
        raise MpidataError(f"{said} holds {_kind(read)}, not a dict of tensors. {advice}")
    for name, tensor in read.items():
        if not isinstance(tensor, torch.Tensor):
            raise MpidataError(f"{said} does not hold a dict of tensors: {name!r} is {_kind(tensor)}. {advice}")
        if not _is_dense(tensor):
            raise MpidataError(f"{said} holds {name!r}, which is {_kind_of_tensor(tensor)}. Save dense tensors.")
    return dict(read)


def _takes_weights(found: Callable[..., Any], said: str) -> bool:
    try:
        signature = inspect.signature(found)
    except ValueError:  # raised for some built-in functions
        return False
    takes = "weights" in signature.parameters
    try:
        signature.bind({}, **({"weights": {}} if takes else {}))
    except TypeError:
        raise MpidataError(
            f"{said} its parameters are {signature}. It is called as answer(inputs) or, if it has a parameter weights, "
            "as answer(inputs, weights=...)."
        ) from None
    return takes


def _is_dense(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_meta


def _kind_of_tensor(tensor: torch.Tensor) -> str:
    return "on the device 'meta'" if tensor.is_meta else f"of layout {tensor.layout}"


def _kind(value: object) -> str:
    return f"an object of {type(value).__name__}"
