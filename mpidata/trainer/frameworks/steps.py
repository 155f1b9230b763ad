"""The place of a framework that resumed from a checkpoint of its own, beside that of the job's checkpoint."""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from mpidata.errors import StreamError

if TYPE_CHECKING:
    from mpidata.trainer.trainer import Trainer

__all__ = ["asks_for_an_empty_pass", "compare_steps"]

# The module that has the class of a training loop, what users call it, and how they have it resume.
_LOOPS = {
    "lightning.pytorch": ("Lightning", "ckpt_path"),
    "pytorch_lightning": ("Lightning", "ckpt_path"),
    "transformers.trainer": ("transformers", "resume_from_checkpoint"),
}
_METHODS = ("fit", "train")  # of no others, as f_locals keeps alive what the variables hold
_NAME = "mpidata: steps of the framework"


class FrameworkSteps:
    """How many optimizer steps a framework has made; kept in the job's checkpoints.

    Parameters
    ----------
    module : str
        That has the class of the loop.
    loop : object
        A Trainer of Lightning or transformers.

    Attributes
    ----------
    saved : int or None
        Those at the checkpoint that the job continues; None: it has none of them.
    """

    def __init__(self, module: str, loop: Any) -> None:
        self.saved: int | None = None
        self.follow(module, loop)

    def follow(self, module: str, loop: Any) -> None:
        """Count those of this loop from now on."""
        self.framework, self.argument = _LOOPS[module]
        self._loop, self._of_lightning = weakref.ref(loop), self.framework == "Lightning"

    def now(self) -> int:
        """Count the steps that the loop has made, those before a resume included."""
        loop = self._loop()
        return 0 if loop is None else int(loop.global_step if self._of_lightning else loop.state.global_step)

    def resumed(self) -> bool:
        """Whether the loop resumed from a checkpoint of the framework; at the first pass."""
        loop = self._loop()
        if self._of_lightning and loop is not None and loop.ckpt_path is None:
            return False  # else these are steps of an earlier fit() in this process
        return self.now() > 0

    def weights(self) -> set[int]:
        """Ids of the parameters that the loop trains; none where it has trained all that it was to."""
        loop = self._loop()
        if loop is None or (self._of_lightning and loop.fit_loop.done):
            return set()
        model = loop.lightning_module if self._of_lightning else loop.model
        return {id(weight) for weight in model.parameters()}

    def train_on(self) -> None:
        """Have the loop go on, although the stream was over at its checkpoint."""
        if self._of_lightning and (loop := self._loop()) is not None:
            loop.fit_loop.epoch_loop.batch_progress.is_last_batch = False

    def state_dict(self) -> dict[str, Any]:
        """Return the steps, for the job's checkpoint."""
        return {"steps": self.now()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the steps at the checkpoint."""
        self.saved = int(state_dict["steps"])


_of_trainers: weakref.WeakKeyDictionary[Trainer, FrameworkSteps] = weakref.WeakKeyDictionary()


def compare_steps(trainer: Trainer) -> bool:
    """Compare the steps of the framework whose loop begins a pass with those at the job's checkpoint.

    Parameters
    ----------
    trainer : Trainer
        Of the stream.

    Returns
    -------
    bool
        Whether the framework resumed, and its model is that of the job's checkpoint.

    Raises
    ------
    StreamError
        It resumed at another place, and its model is not registered.

    Notes
    -----
    At the first pass of a process; later ones only have the steps counted. A dataset is not told who iterates over it,
    so this looks at the callers.
    """
    found = next(_loops(), None)
    if found is None:
        return False
    if (steps := _of_trainers.get(trainer)) is not None:
        steps.follow(*found)
        return False
    steps = _of_trainers[trainer] = FrameworkSteps(*found)
    trainer.checkpoints.hold(_NAME, steps)
    now, batch = steps.now(), trainer.checkpoints.restored.batch
    if batch and steps.saved is None:
        return False
    if not steps.resumed():
        _refuse_untrained(trainer, steps)
        return False
    if batch and (now == steps.saved or _went_back(trainer, steps)):
        steps.train_on()
        return True
    where, or_else = "the job starts at its first batch", ""
    if batch:
        where = f"the job's checkpoint is of step {steps.saved}"
        or_else = f", or resume from the checkpoint of step {steps.saved}"
    raise StreamError(
        f"{steps.framework} resumed from a checkpoint of step {now} ({steps.argument}), but {where}: samples of the "
        f"stream would be left out or trained on again. Leave {steps.argument} out and register the model and the "
        f"optimizer with stream.register(...), which the job's checkpoints then hold{or_else}. To start from the "
        "weights alone, load them into the model."
    )


def asks_for_an_empty_pass() -> bool:
    """Whether a loop of transformers calls: it finds the end of a stream by a pass that gives nothing."""
    return any(_LOOPS[module][0] == "transformers" for module, _ in _loops())


def _went_back(trainer: Trainer, steps: FrameworkSteps) -> bool:
    """Give a model that is registered the weights that belong to the place in the stream; False where it is not."""
    registered = trainer.checkpoints.registered
    modules = [thing for thing in registered.values() if isinstance(thing, torch.nn.Module)]
    weights = steps.weights()
    if not weights or not weights <= {id(weight) for module in modules for weight in module.parameters()}:
        return False
    trainer.checkpoints.restore_registered()
    has_optimizer = any(isinstance(thing, torch.optim.Optimizer) for thing in registered.values())
    advice = "Leave" if has_optimizer else "Register the optimizer, too, and leave"
    warnings.warn(
        f"{steps.framework} resumed from a checkpoint of step {steps.now()} ({steps.argument}), but the job's "
        f"checkpoint, and with it the stream, is of step {steps.saved}. So what is registered goes on from the job's "
        f"checkpoint ({', '.join(registered)}), and all else from that of {steps.framework}. {advice} "
        f"{steps.argument} out.",
        stacklevel=4,
    )
    return True


def _refuse_untrained(trainer: Trainer, steps: FrameworkSteps) -> None:
    if steps.saved and not trainer.checkpoints.registered:
        raise StreamError(
            f"The job's checkpoint is of step {steps.saved} of {steps.framework}, which now begins at step 0, and the "
            "script has registered nothing: the stream would go on with an untrained model. Register the model and the "
            f"optimizer with stream.register(...), or resume from the framework's checkpoint of step {steps.saved} "
            f"({steps.argument})."
        )


def _loops() -> Iterator[tuple[str, Any]]:
    """Find loops of frameworks whose methods have led to this call, innermost first."""
    classes = [(name, sys.modules[name].Trainer) for name in _LOOPS if hasattr(sys.modules.get(name), "Trainer")]
    frame = sys._getframe(2) if classes else None
    while frame is not None:
        caller = frame.f_locals.get("self") if frame.f_code.co_name in _METHODS else None
        for name, of in classes:
            if isinstance(caller, of):
                yield name, caller
        frame = frame.f_back
