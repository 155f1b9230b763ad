"""Objects that a script registers for checkpoints: anything with state_dict and load_state_dict."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch

from mpidata.checkpoint.trainer_file import Saved
from mpidata.errors import MpidataError, StreamError

__all__ = ["Stateful", "check_stateful", "restore_state", "save_state"]


class Stateful(Protocol):
    """Has a state that can be saved and restored: a module, an optimizer, a learning rate scheduler, ..."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any:
        """Restore a state."""


def check_stateful(objects: Mapping[str, Any]) -> None:
    """Raise StreamError if an object's state cannot be saved and restored, or an optimizer's model is missing."""
    if not objects:
        raise StreamError("register: there is nothing to register. Name the objects: register(model=model, ...).")
    for name, thing in objects.items():
        if not name.isidentifier():
            raise StreamError(f"register: {name!r} cannot name an object. Use letters, digits and _.")
        if not callable(getattr(thing, "state_dict", None)) or not callable(getattr(thing, "load_state_dict", None)):
            raise StreamError(
                f"register: {name} is a {type(thing).__name__}, which lacks state_dict() or load_state_dict(). "
                "Register objects that have both; a small class with these two methods is enough."
            )
        if isinstance(thing, torch.optim.Optimizer) and _has_parts(_weights(thing)):
            _model_of(name, thing, objects)


def save_state(objects: Mapping[str, Stateful]) -> dict[str, Saved]:
    """Copy the objects' states, as torch.save writes them; of a distributed state each trainer copies its parts.

    Notes
    -----
    Collective over the default process group of torch.distributed if a state is distributed. These states come first,
    so that no trainer waits for another one that cannot save some other state.
    """
    states = {name: _state_of(name, thing, objects) for name, thing in objects.items()}
    parted = {name for name, state in states.items() if _has_parts(state)}
    saved = {}
    for name in sorted(states, key=lambda name: name not in parted):
        if name in parted:
            from mpidata.checkpoint.sharded import save_pieces  # loads much of torch.distributed

            saved[name] = Saved(*save_pieces({name: states[name]}))
            continue
        memory = io.BytesIO()
        torch.save(states[name], memory)
        saved[name] = Saved(memory.getvalue())
    return saved


def _has_parts(state: Any) -> bool:
    if "torch.distributed.tensor" not in sys.modules:
        return False
    from mpidata.checkpoint.sharded import has_parts

    return has_parts(state)


def _state_of(name: str, thing: Any, objects: Mapping[str, Any], made: bool = False) -> Any:
    """Return a state; that of an optimizer, `made` or with parts, by names of parameters instead of numbers."""
    state = thing.state_dict()
    if isinstance(thing, torch.optim.Optimizer) and (made or _has_parts(state)):
        from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict

        return get_optimizer_state_dict(_model_of(name, thing, objects), thing)
    return state


def _weights(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [weight for group in optimizer.param_groups for weight in group["params"]]


def _model_of(name: str, optimizer: torch.optim.Optimizer, objects: Mapping[str, Any]) -> torch.nn.Module:
    """Find the registered model that has the parameters of an optimizer; raises StreamError if there is none."""
    wanted = {id(weight) for weight in _weights(optimizer)}
    for thing in objects.values():
        if isinstance(thing, torch.nn.Module) and wanted <= {id(weight) for weight in thing.parameters()}:
            return thing
    raise StreamError(
        f"register: the parameters of {name} are distributed among trainers, but no registered object is a model with "
        "all of these parameters. Register the model as well: register(model=model, optimizer=optimizer)."
    )


def restore_state(objects: Mapping[str, Stateful], saved: Mapping[str, Saved], checkpoint: Path) -> None:
    """Restore the objects' states from a checkpoint.

    Parameters
    ----------
    objects : mapping
        Objects by name.
    saved : mapping
        States by name.
    checkpoint : Path
        Folder of the checkpoint.

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
            "The checkpoint was taken before the script registered any objects: their states are not restored.",
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
            if saved[name].layout:
                _restore_parts(name, objects, saved[name].layout, checkpoint)
                continue
            state = torch.load(io.BytesIO(saved[name].contents), map_location="cpu", weights_only=False)
            thing.load_state_dict(state)
        except MpidataError as error:
            raise StreamError(
                f"The state of {name} in the checkpoint does not fit. {error} Settings that were changed with `--set` "
                "can be changed back in the same way."
            ) from error
        except Exception as error:  # an object of the script may raise anything
            raise StreamError(
                f"register: the state of {name} in the checkpoint does not fit. Resume with the script and the "
                f"settings that the checkpoint was made with. {type(error).__name__}: {error}"
            ) from error


def _restore_parts(name: str, objects: Mapping[str, Any], index: bytes, checkpoint: Path) -> None:
    """Restore this trainer's present parts of an object."""
    from mpidata.checkpoint.sharded import load_pieces, open_pieces

    thing = objects[name]
    state = _state_of(name, thing, objects, made=True)
    with open_pieces(checkpoint, name) as read:
        load_pieces({name: state}, index, read)
    if isinstance(thing, torch.optim.Optimizer):
        from torch.distributed.checkpoint.state_dict import set_optimizer_state_dict

        set_optimizer_state_dict(_model_of(name, thing, objects), thing, state)
    else:
        thing.load_state_dict(state)


def _list(names: Any) -> str:
    return ", ".join(sorted(names))
