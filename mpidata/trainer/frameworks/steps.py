"""Compare the step at which a framework resumed from its own checkpoint with that of the job's checkpoint."""

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

# The module with the class of a training loop, the framework's name, and its argument to resume.
_LOOPS = {
    "lightning.pytorch": ("Lightning", "ckpt_path"),
    "pytorch_lightning": ("Lightning", "ckpt_path"),
    "transformers.trainer": ("transformers", "resume_from_checkpoint"),
}
_METHODS = ("fit", "train")  # only these, as f_locals keeps alive what the variables hold
_NAME = "mpidata: steps of the framework"


class FrameworkSteps:
    """The number of optimizer steps that a framework has made; kept in the job's checkpoints.

    Parameters
    ----------
    module : str
        The module with the class of the loop.
    loop : object
        A Trainer of Lightning or transformers.

    Attributes
    ----------
    saved : int or None
        The steps at the checkpoint from which the job resumes; None if it has none.
    """

    def __init__(self, module: str, loop: Any) -> None:
        self.saved: int | None = None
        self.follow(module, loop)

    def follow(self, module: str, loop: Any) -> None:
        """Count the steps of this loop from now on."""
        self.framework, self.argument = _LOOPS[module]
        self._loop, self._of_lightning = weakref.ref(loop), self.framework == "Lightning"

    def now(self) -> int:
        """Return the number of steps that the loop has made, including those before a resume."""
        loop = self._loop()
        return 0 if loop is None else int(loop.global_step if self._of_lightning else loop.state.global_step)

    def resumed(self) -> bool:
        """Whether the loop resumed from a checkpoint of the framework; at the first pass."""
        loop = self._loop()
        if self._of_lightning and loop is not None and loop.ckpt_path is None:
            return False  # else these are steps of an earlier fit() in this process
        return self.now() > 0

    def weights(self) -> set[int]:
        """Return the ids of the parameters that the loop trains; empty if the loop is done."""
        loop = self._loop()
        if loop is None or (self._of_lightning and loop.fit_loop.done):
            return set()
        model = loop.lightning_module if self._of_lightning else loop.model
        return {id(weight) for weight in model.parameters()}

    def train_on(self) -> None:
        """Let the loop continue, although the stream was over at its checkpoint."""
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
        The trainer of the stream.

    Returns
    -------
    bool
        Whether the framework resumed, and its model is that of the job's checkpoint.

    Raises
    ------
    StreamError
        The framework resumed at another step, and its model is not registered.

    Notes
    -----
    Compares only at the first pass of a process; later passes only count the steps. A dataset does not know who
    iterates over it, so this inspects the callers.
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
        f"stream would be skipped or trained on again. Leave {steps.argument} out and register the model and the "
        f"optimizer with stream.register(...), so that the job's checkpoints contain them{or_else}. To start only "
        "from the weights, load them into the model."
    )


def asks_for_an_empty_pass() -> bool:
    """Whether a transformers loop is a caller: it detects the end of a stream by an empty pass."""
    return any(_LOOPS[module][0] == "transformers" for module, _ in _loops())


def _went_back(trainer: Trainer, steps: FrameworkSteps) -> bool:
    """Restore the weights of a registered model for the position in the stream; False if it is not registered."""
    registered = trainer.checkpoints.registered
    modules = [thing for thing in registered.values() if isinstance(thing, torch.nn.Module)]
    weights = steps.weights()
    if not weights or not weights <= {id(weight) for module in modules for weight in module.parameters()}:
        return False
    trainer.checkpoints.restore_registered()
    has_optimizer = any(isinstance(thing, torch.optim.Optimizer) for thing in registered.values())
    advice = "Leave" if has_optimizer else "Also register the optimizer, and leave"
    warnings.warn(
        f"{steps.framework} resumed from a checkpoint of step {steps.now()} ({steps.argument}), but the job's "
        f"checkpoint, and with it the stream, is of step {steps.saved}. Registered objects ({', '.join(registered)}) "
        f"continue from the job's checkpoint, everything else from that of {steps.framework}. {advice} "
        f"{steps.argument} out.",
        stacklevel=4,
    )
    return True


def _refuse_untrained(trainer: Trainer, steps: FrameworkSteps) -> None:
    if steps.saved and not trainer.checkpoints.registered:
        raise StreamError(
            f"The job's checkpoint is of step {steps.saved} of {steps.framework}, which now starts at step 0, and the "
            "script has registered nothing: the stream would continue with an untrained model. Register the model and "
            f"optimizer with stream.register(...), or resume from the framework's checkpoint of step {steps.saved} "
            f"({steps.argument})."
        )


def _loops() -> Iterator[tuple[str, Any]]:
    """Yield the frameworks' loops whose methods led to this call, innermost first."""
    classes = [(name, sys.modules[name].Trainer) for name in _LOOPS if hasattr(sys.modules.get(name), "Trainer")]
    frame = sys._getframe(2) if classes else None
    while frame is not None:
        caller = frame.f_locals.get("self") if frame.f_code.co_name in _METHODS else None
        for name, of in classes:
            if isinstance(caller, of):
                yield name, caller
        frame = frame.f_back
