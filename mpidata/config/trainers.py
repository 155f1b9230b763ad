"""`trainers`: what they run, on how many ranks, and what happens if one dies."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Tag, model_validator
from typing_extensions import Self

from mpidata.config.base import Boolean, Count, Key, Model, Natural, Positive, fixed_key, free_key, refuse
from mpidata.config.programs import Arguments

__all__ = ["Elastic", "Trainers"]


class Elastic(Model):
    """How the job continues when a trainer dies, see [elastic training](elastic.md)."""

    at_least: Count = free_key(
        default=1,
        description="Smallest number of trainers with which the job continues; below it the job ends, as without "
        "this section. Waiting spares do not count.",
    )
    exceptions: Literal["end", "lose"] = free_key(
        default="end",
        description="Effect of an uncaught exception in a trainer's script: `end` ends the job, `lose` loses only "
        "this trainer, as if it had died.",
    )


class Trainers(Model):
    """The ranks that train, and their program."""

    ranks: Count = free_key(
        default=1, description="Number of trainer ranks: one process each, and one GPU each if there are GPUs."
    )
    program: Arguments = free_key(
        description="The command that runs the training script: the executable, then its arguments. No shell reads "
        "it. The script is an ordinary PyTorch script that uses `mpidata.MPIStreamDataset`. `python` is the Python "
        "that runs mpidata; other names are looked up in the job file's folder, then on PATH. The script runs in the "
        "job file's folder.",
        examples=["[python, train.py]"],
    )
    ranks_per_replica: Count = fixed_key(
        default=1,
        description="Number of consecutive trainer ranks that hold one copy of the model together, as in tensor or "
        "pipeline parallelism, and get the same batches: see [model-parallel training](model-parallel.md). `ranks` "
        "must be a multiple of it.",
    )
    spares: Natural = free_key(
        default=0,
        description="With `elastic`: number of additional ranks that wait to replace trainers that die, see "
        "[spares](elastic.md#spares).",
    )
    per_node: Count | None = free_key(
        default=None,
        description="In an allocation: number of trainers on each node that has any. Solvers are placed on the other "
        "nodes, and on the trainers' nodes only if the others are full.",
        json_schema_extra={"default": "as many as fit"},
    )
    gpus_per_rank: Natural = free_key(
        default=0,
        description="Number of GPUs that `mpidata submit` requests for each trainer. A trainer sees all GPUs of its "
        "node; its first one has the number LOCAL_RANK × `gpus_per_rank`.",
    )
    elastic: Annotated[
        Annotated[Boolean, Tag("<switch>")] | Annotated[Elastic, Tag("<section>")],
        Discriminator(lambda value: "<section>" if isinstance(value, dict | Elastic) else "<switch>"),
        Key(json_schema_extra={"kind": "true or false, or mapping, see below"}),
    ] = free_key(
        default=False,
        description="Whether the other trainers continue when one dies, see [elastic training](elastic.md). Needs "
        "ULFM and at least 2 trainers.",
        examples=["{at_least: 2}"],
    )

    timeout_s: Positive = free_key(
        default=600.0,
        description="With `elastic`: if the others wait this many seconds for a trainer in a step, it counts as hung "
        "and is killed. With `servers`: if a trainer gives no sign of life for this many seconds, because it is "
        "stopped or hangs, it is killed, and the job ends as after its death.",
    )

    @property
    def replicas(self) -> int:
        """Number of copies of the model, each of which gets its own batches."""
        return self.ranks // self.ranks_per_replica

    @property
    def at_least(self) -> int:
        """Number of living trainers with which the job continues after a death; 0: a death ends the job."""
        return self.elastic.at_least if isinstance(self.elastic, Elastic) else int(self.elastic)

    @property
    def exceptions_lose(self) -> bool:
        """Whether an exception of a script loses only its trainer."""
        return isinstance(self.elastic, Elastic) and self.elastic.exceptions == "lose"

    @model_validator(mode="after")
    def _replicas(self) -> Self:
        each = self.ranks_per_replica
        if self.ranks % each:
            said = f"{{key}} is {each}, but 'trainers.ranks' is {self.ranks}: the ranks do not form whole replicas"
            refuse([(("ranks_per_replica",), f"{said}. Make 'trainers.ranks' a multiple of it.")])
        if each > 1 and self.at_least:
            said = f"{{key}} is {each}, but with 'trainers.elastic' each rank must hold the whole model"
            refuse([(("ranks_per_replica",), f"{said}. Remove one of them.")])
        return self

    @model_validator(mode="after")
    def _others(self) -> Self:
        if self.at_least >= self.ranks:
            said = f"{{key}} needs more trainers than 'at_least', {self.at_least}, but 'trainers.ranks' is"
            lower = ", or lower 'trainers.elastic.at_least'" if self.at_least > 1 and self.ranks > 1 else ""
            fix = f"Raise 'trainers.ranks'{lower}; instead of {'either' if lower else 'this'}, you can remove the key."
            refuse([(("elastic",), f"{said} {self.ranks}. {fix}")])
        if self.spares and not self.at_least:
            said = f"{{key}} is {self.spares}, but without 'trainers.elastic' the death of a trainer ends the job"
            refuse([(("spares",), f"{said}. Add `elastic: true`, or remove it.")])
        return self
