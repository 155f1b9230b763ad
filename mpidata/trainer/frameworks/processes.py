"""How many processes a framework believes to train."""

from __future__ import annotations

import sys

from mpidata.errors import StreamError

__all__ = ["check_processes"]


def check_processes(trainers: int) -> None:
    """Raise StreamError where accelerate, which is set up already, takes each of several trainers for the only one."""
    state = sys.modules.get("accelerate.state")
    if trainers == 1 or state is None or not state.is_initialized() or state.PartialState().num_processes > 1:
        return
    raise StreamError(
        f"accelerate takes this trainer for the only one, though there are {trainers}, as it does without a GPU: "
        "each would train a model of its own. Give Accelerator(cpu=True), or with transformers "
        "TrainingArguments(use_cpu=True)."
    )
