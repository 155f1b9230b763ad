"""The user's function: how it is found, what it is called with, and what it must return."""

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
        There is no such function, or none that can be called so. What importing its module raises comes as it is.
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
        """Call it; returns the outputs that are wanted, in their order, on the CPU and contiguous.

        Raises
        ------
        FunctionError
            It returned something else. What it raises itself comes as it is.
        """
        try:
            returned = self._call(inputs, weights=weights) if self.takes_weights else self._call(inputs)
        finally:
            if os.getpid() != self._process:
                self._end_child()
        if not isinstance(returned, (dict, Mapping)):  # the first is soon known
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
                and not tensor.is_conj()  # else its memory has not its values
                and not tensor.is_neg()
            ):
                tensor = self._converted(tensor, array, rows)
            found.append(tensor)
        return found

    def _end_child(self) -> None:
        """End a process that the function has forked, instead of having it go on as this one: MPI survives no fork."""
        error = sys.exc_info()[1]
        if isinstance(error, SystemExit) and not error.code:
            os._exit(0)
        what = f"raised {type(error).__name__}: {error}" if error else "returned"
        print(
            f"mpidata: a process that {self.name} has forked {what}, and ends. End such a process by os._exit().",
            file=sys.stderr,
            flush=True,
        )
        os._exit(1)

    def _missing(self, returned: Mapping[str, Any], name: str) -> NoReturn:
        names = ", ".join(repr(name) for name in returned) or "none"
        raise FunctionError(
            f"{self.name} returned no {name!r}, which a solver asks for. The names that it returned: {names:.500}. "
            "Return all that solvers ask for."
        )

    def _converted(self, tensor: object, array: Array, rows: int) -> torch.Tensor:
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
        if not _is_dense(tensor):
            raise FunctionError(f"{said} it is {_kind_of_tensor(tensor)}. Return a dense tensor, with values.")
        return tensor.detach().to("cpu").resolve_conj().resolve_neg().contiguous()


def read_weights(path: str) -> Tensors:
    """Read the file of `inference.weights`; raises MpidataError if it cannot be read, or holds no dict of tensors."""
    said, advice = f"inference.weights, {path},", "Write it by torch.save(net.state_dict(), ...)."
    try:
        read = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise MpidataError(f"{said} cannot be read: {type(error).__name__}: {error}") from None
    except Exception as error:  # torch raises many kinds, whose advice nobody can follow here
        raise MpidataError(f"{said} is no file of tensors alone ({type(error).__name__}). {advice}") from None
    if not isinstance(read, Mapping):
        raise MpidataError(f"{said} holds no dict of tensors, but {_kind(read)}. {advice}")
    for name, tensor in read.items():
        if not isinstance(tensor, torch.Tensor):
            raise MpidataError(f"{said} holds no dict of tensors: {name!r} is {_kind(tensor)}. {advice}")
        if not _is_dense(tensor):
            raise MpidataError(f"{said} holds {name!r}, which is {_kind_of_tensor(tensor)}. Save dense tensors.")
    return dict(read)


def _takes_weights(found: Callable[..., Any], said: str) -> bool:
    try:
        signature = inspect.signature(found)
    except ValueError:  # of some that are built in
        return False
    takes = "weights" in signature.parameters
    try:
        signature.bind({}, **({"weights": {}} if takes else {}))
    except TypeError:
        raise MpidataError(
            f"{said} its parameters are {signature}. It is called as answer(inputs) or, where it has such a parameter, "
            "as answer(inputs, weights=...)."
        ) from None
    return takes


def _is_dense(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_meta


def _kind_of_tensor(tensor: torch.Tensor) -> str:
    return "on the device 'meta'" if tensor.is_meta else f"of layout {tensor.layout}"


def _kind(value: object) -> str:
    return f"an object of {type(value).__name__}"
