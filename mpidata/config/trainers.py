"""`trainers`: what they run, on how many ranks, and what happens when one dies."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Tag, model_validator
from typing_extensions import Self

from mpidata.config.base import Boolean, Count, Key, Model, Natural, Positive, fixed_key, free_key, refuse
from mpidata.config.programs import Arguments

__all__ = ["Elastic", "Trainers"]


class Elastic(Model):
    """What happens when trainers die: the others go on, see [trainers that die](elastic.md)."""

    at_least: Count = free_key(
        default=1,
        description="Number of trainers below which the job ends, as it does without this section. Spares that wait "
        "do not count.",
    )
    exceptions: Literal["end", "lose"] = free_key(
        default="end",
        description="What an exception does that the script of a trainer does not catch: `end` ends the job, `lose` "
        "costs this trainer alone, as its death does.",
    )


class Trainers(Model):
    """The ranks that train, and what they run."""

    ranks: Count = free_key(
        default=1, description="Number of trainer ranks: one process each, and one GPU each if there are GPUs."
    )
    program: Arguments = free_key(
        description="The command that runs the training script: the executable, then its arguments; no shell reads it. "
        "The script is an ordinary one that uses `mpidata.MPIStreamDataset`. `python` means the Python that runs "
        "mpidata; other names are looked for in the job file's folder, then on PATH. The script runs in the job file's "
        "folder.",
        examples=["[python, train.py]"],
    )
    ranks_per_replica: Count = fixed_key(
        default=1,
        description="Number of consecutive trainer ranks that hold one copy of the model together, as in tensor or "
        "pipeline parallelism, and get the same batches: see [model-parallel training](model-parallel.md). `ranks` is "
        "a multiple of it.",
    )
    spares: Natural = free_key(
        default=0,
        description="With `elastic`: number of further ranks that wait until a trainer has died, and take its place, "
        "see [trainers that die](elastic.md#spares).",
    )
    per_node: Count | None = free_key(
        default=None,
        description="In an allocation: number of trainers on each node that has any. Solvers go to the "
        "other nodes, and to the trainers' nodes only when the others are full.",
        json_schema_extra={"default": "as many as fit"},
    )
    gpus_per_rank: Natural = free_key(
        default=0,
        description="Number of GPUs that `mpidata submit` asks for, for each trainer. A trainer sees "
        "all GPUs of its node; the number of its first one is LOCAL_RANK times this.",
    )
    elastic: Annotated[
        Annotated[Boolean, Tag("<switch>")] | Annotated[Elastic, Tag("<section>")],
        Discriminator(lambda value: "<section>" if isinstance(value, dict | Elastic) else "<switch>"),
        Key(json_schema_extra={"kind": "true or false, or mapping, see below"}),
    ] = free_key(
        default=False,
        description="Whether the other trainers go on when one dies, see [trainers that die](elastic.md). Needs ULFM "
        "and at least 2 trainers.",
        examples=["{at_least: 2}"],
    )

    timeout_s: Positive = free_key(
        default=600.0,
        description="With `elastic`: seconds for which the others wait for a trainer in a step, until it counts as "
        "hung and is killed. With `servers`: seconds for which one may give no sign of life, as it is stopped or "
        "hangs, until it is killed, and the job ends as after its death.",
    )

    @property
    def replicas(self) -> int:
        """Number of copies of the model, each of which gets batches of its own."""
        return self.ranks // self.ranks_per_replica

    @property
    def at_least(self) -> int:
        """While so many trainers live, the others go on after a death; 0: a death ends the job."""
        return self.elastic.at_least if isinstance(self.elastic, Elastic) else int(self.elastic)

    @property
    def exceptions_lose(self) -> bool:
        """Whether an exception of a script costs its trainer alone."""
        return isinstance(self.elastic, Elastic) and self.elastic.exceptions == "lose"

    @model_validator(mode="after")
    def _replicas(self) -> Self:
        each = self.ranks_per_replica
        if self.ranks % each:
            said = f"{{key}} is {each}, but 'trainers.ranks' is {self.ranks}: the ranks do not make whole replicas"
            refuse([(("ranks_per_replica",), f"{said}. Make 'trainers.ranks' a multiple of it.")])
        if each > 1 and self.at_least:
            said = f"{{key}} is {each}, but with 'trainers.elastic' each rank must hold the whole model"
            refuse([(("ranks_per_replica",), f"{said}. Remove one of them.")])
        return self

    @model_validator(mode="after")
    def _others(self) -> Self:
        if self.at_least >= self.ranks:
            said = f"{{key}} lets trainers go on without one that died, down to {self.at_least}, but there are"
            lower = ", or lower 'trainers.elastic.at_least'" if self.at_least > 1 and self.ranks > 1 else ""
            fix = f"Raise 'trainers.ranks'{lower}; without {'either' if lower else 'this'}, remove it."
            refuse([(("elastic",), f"{said} {self.ranks} at first. {fix}")])
        if self.spares and not self.at_least:
            said = f"{{key}} is {self.spares}, but without 'trainers.elastic' the death of a trainer ends the job"
            refuse([(("spares",), f"{said}. Add `elastic: true`, or remove it.")])
        return self
