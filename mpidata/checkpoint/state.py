"""What a script registers to be kept in checkpoints: anything with state_dict and load_state_dict."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from typing import Any, Protocol

import torch

from mpidata.errors import MpidataError, StreamError

__all__ = ["Stateful", "check_stateful", "restore_state", "save_state"]


class Stateful(Protocol):
    """Has a state that can be taken and put back: a module, an optimizer, a scheduler of the learning rate, ..."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any:
        """Take a state over."""


def check_stateful(objects: Mapping[str, Any]) -> None:
    """Raise StreamError where an object has no state that can be taken and put back."""
    if not objects:
        raise StreamError("register: there is nothing to register. Name the objects: register(model=model, ...).")
    for name, thing in objects.items():
        if not name.isidentifier():
            raise StreamError(f"register: {name!r} cannot name an object. Use letters, digits and _.")
        if not callable(getattr(thing, "state_dict", None)) or not callable(getattr(thing, "load_state_dict", None)):
            raise StreamError(
                f"register: {name} is a {type(thing).__name__}, which lacks state_dict() or load_state_dict(). "
                "Register objects that have both; a small class of your own with these two methods will do."
            )


def save_state(objects: Mapping[str, Stateful]) -> dict[str, bytes]:
    """Copy the objects' states, as torch.save writes them."""
    saved = {}
    for name, thing in objects.items():
        memory = io.BytesIO()
        torch.save(thing.state_dict(), memory)
        saved[name] = memory.getvalue()
    return saved


def restore_state(objects: Mapping[str, Stateful], saved: Mapping[str, bytes]) -> None:
    """Give the objects the states that a checkpoint holds for them.

    Raises
    ------
    StreamError
        The names are not the same, or a state cannot be read or does not fit its object.

    Notes
    -----
    Uses pickle, as torch.load does: a checkpoint is as trustworthy as the script that wrote it.
    """
    if not saved:
        warnings.warn(
            "The checkpoint was taken before the script registered anything: what it registers now begins afresh.",
            stacklevel=4,
        )
        return
    missing, unknown = sorted(saved.keys() - objects.keys()), sorted(objects.keys() - saved.keys())
    if missing or unknown:
        what = [f"does not name {_list(missing)}, which the checkpoint holds"] if missing else []
        what += [f"names {_list(unknown)}, which the checkpoint does not hold"] if unknown else []
        raise StreamError(
            f"register {', and '.join(what)}. Register the same names as in the run that is resumed: {_list(saved)}."
        )
    for name, thing in objects.items():
        try:
            thing.load_state_dict(torch.load(io.BytesIO(saved[name]), map_location="cpu", weights_only=False))
        except MpidataError as error:
            raise StreamError(
                f"The state of {name} in the checkpoint does not fit. {error} What was changed by `--set` is changed "
                "back in the same way."
            ) from error
        except Exception as error:  # an object of the script may raise anything
            raise StreamError(
                f"register: the state of {name} in the checkpoint does not fit. Resume with the script and the "
                f"settings that the checkpoint was made with. {type(error).__name__}: {error}"
            ) from error


def _list(names: Any) -> str:
    return ", ".join(sorted(names))
