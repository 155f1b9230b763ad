"""`inference`: the ranks that run the model for solvers that ask."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from mpidata.config.base import Count, Key, Model, Natural, Positive, Text, free_key
from mpidata.config.programs import object_name

__all__ = ["Inference"]


class Inference(Model):
    """The ranks that run the model for solvers that ask."""

    ranks: Count = free_key(default=1, description="Number of ranks that answer at once (one process each).")
    function: Annotated[Text, AfterValidator(object_name)] = free_key(
        description="A Python function, written `module:function`, that can be imported from the job file's folder. It "
        "gets a dict of tensors [rows, ...] by name and returns such a dict. If it has an argument `weights`, it also "
        "gets the weights, a dict of tensors. Rows must not depend on one another, nor on earlier calls.",
        examples=['"net:answer"'],
    )
    batch: Count = free_key(
        default=1024, description="Most rows of a call of the function; a question with more is passed alone."
    )
    wait_ms: Annotated[float, Key(ge=0, le=60_000)] = free_key(
        default=0.0,
        description="Milliseconds for which a rank waits for more questions while it has fewer than `batch` rows.",
    )
    weights: Text | None = free_key(
        default=None,
        description="A file of `torch.save` with the weights to begin with: a dict of tensors, for example a "
        "`state_dict`. Without this key a function that takes weights answers once some were published.",
        examples=["net.pt"],
        json_schema_extra={"default": "none"},
    )
    spares: Natural = free_key(default=0, description="What `solvers.spares` is for groups.")
    timeout_s: Positive = free_key(
        default=60.0,
        description="Seconds of silence after which an inference rank is ended as hung: the most for one call of the "
        "function. If no inference rank is ready to answer for so long while solvers run, the job ends; one that is "
        "being started has `start_timeout_s` more.",
    )
    start_timeout_s: Positive = free_key(
        default=600.0, description="The same while it imports the function and reads the weights."
    )
