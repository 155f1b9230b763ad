"""The job file as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, PrivateAttr, Strict

from mpidata.config.base import Key, Location, Model, Text, idle_key, refuse, stated
from mpidata.config.data import Buffer, Checkpoint, Field, FieldName, Validation
from mpidata.config.parameters import Parameters
from mpidata.config.programs import Launch, Solvers, Trainers

__all__ = ["Job"]


def _file_name(name: str) -> str:
    if not all(c.isalnum() or c in "._-" for c in name) or not name.isascii() or name[:1] in ("", ".", "-"):
        refuse([((), f"{{key}} is {name!r}. Use letters, digits, '.', '_' and '-', a letter or digit first.")])
    return name


class Job(Model):
    """A checked job file. Equal jobs have equal keys; which file they came from does not count."""

    name: Annotated[Text, AfterValidator(_file_name)] = Key(
        default="job",
        description="Name of the job and of the folder of its runs.",
        json_schema_extra={"default": "the job file's name without suffix"},
    )
    seed: Annotated[int, Strict(), Key(ge=0, le=2**63 - 1)] = Key(
        default=0, description="Seed of everything that is drawn at random: parameters and batches."
    )
    output: Text = Key(default="runs", description="Where run folders go: `<output>/<name>/1`, `2`, ...")
    folder: Path = Key(
        default=Path("."),
        description="What relative paths are relative to, and where all programs run. "
        "The job file that is kept in a run folder has it, so that it can be run again.",
        json_schema_extra={"kind": "path", "default": "the job file's folder"},
    )
    trainers: Trainers = Key(description="The ranks that train.", examples=["{program: [python, train.py]}"])
    solvers: Solvers = Key(description="The ranks that simulate.", examples=["{program: [./heat2d]}"])
    parameters: Parameters = Key(
        description="The simulations to run.", examples=["{count: 200, space: {alpha: [0.01, 0.1]}}"]
    )
    validation: Validation = Key(default=Validation(), description="Simulations that are never trained on.")
    fields: dict[FieldName, Field] = Key(
        min_length=1,
        description="The arrays of a sample, by name. A name is letters, digits and underscores, and not `time`, "
        "`step`, `simulation` or `parameters`.",
        examples=["{temperature: {shape: [64, 64]}}"],
        json_schema_extra={"kind": "mapping from name to field, at least one"},
    )
    buffer: Buffer = Key(default=Buffer(), description="Where samples wait on a trainer.")
    checkpoint: Checkpoint | None = idle_key(
        None,
        "Checkpoints, from which a job that was interrupted can go on.",
        instead="none are written, and a job that was interrupted starts anew",
    )
    launch: Launch = Key(default=Launch(), description="How the job is started.")

    _path: Path = PrivateAttr(default=Path("job.yaml"))
    _origins: dict[Location, str] = PrivateAttr(default_factory=dict)

    @property
    def path(self) -> Path:
        """The file this job was read from."""
        return self._path

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of the columns of a sample's parameters."""
        return tuple(self.parameters.space)

    @property
    def simulations(self) -> int:
        """Number of simulations to train on."""
        if self.parameters.sampler == "grid":
            return self.parameters.grid_size
        return self.parameters.count or 0

    @property
    def world_size(self) -> int:
        """Number of ranks: the scheduler, the trainers and the solvers."""
        return 1 + self.trainers.ranks + self.solvers.groups * self.solvers.ranks_per_group

    def without_effect(self) -> list[str]:
        """Tell which keys the job file sets that this version does not act on: a sentence for each, with its line."""
        found = [(location, instead) for location, instead, is_set in _idle_keys(self) if is_set]
        return [
            f"{self.path.name}: '{'.'.join(location)}' has no effect in this version: {instead}."
            + stated(self._origins, location)
            for location, instead in found
        ]

    def resolved(self) -> dict[str, Any]:
        """All keys and their values as plain data, but for keys without effect that the job file does not set."""
        data = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        for location, _, is_set in _idle_keys(self):
            if not is_set:
                inner = data
                for key in location[:-1]:
                    inner = inner[key]
                inner.pop(location[-1], None)
        return data

    def __eq__(self, other: object) -> bool:
        """Compare all keys; the path does not count."""
        return isinstance(other, Job) and self.model_dump() == other.model_dump()

    __hash__ = None  # type: ignore[assignment]


def _idle_keys(model: Model, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str, bool]]:
    """Find the keys that this version does not act on, with what happens instead, and whether each is set."""
    for name, info in type(model).model_fields.items():
        value, location = getattr(model, name), (*above, name)
        if isinstance(info.json_schema_extra, dict) and "instead" in info.json_schema_extra:
            is_set = name in model.model_fields_set and value is not None
            yield location, str(info.json_schema_extra["instead"]), is_set
        elif isinstance(value, Model):
            yield from _idle_keys(value, location)
