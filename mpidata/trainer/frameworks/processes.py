"""The number of processes that a framework assumes."""

from __future__ import annotations

import sys

from mpidata.errors import StreamError

__all__ = ["check_processes"]


def check_processes(trainers: int) -> None:
    """Raise StreamError if accelerate is already set up and treats each of several trainers as the only one."""
    state = sys.modules.get("accelerate.state")
    if trainers == 1 or state is None or not state.is_initialized() or state.PartialState().num_processes > 1:
        return
    raise StreamError(
        f"accelerate treats this trainer as the only one, although there are {trainers}, because there is no GPU: each "
        "trainer would train a model of its own. Give Accelerator(cpu=True), or with transformers "
        "TrainingArguments(use_cpu=True)."
    )
