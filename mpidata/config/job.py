"""The job file as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, PrivateAttr, Strict

from mpidata.config.base import Boolean, Key, Model, Text, fixed_key, free_key, refuse
from mpidata.config.data import Buffer, Checkpoint, FieldEntry, FieldName, LengthEntry, Record, Samples, Validation
from mpidata.config.launching import Inference, Launch, Loaders, Servers, Slurm
from mpidata.config.parameters import WEIGHT, Parameters
from mpidata.config.programs import Solvers, argument_list, object_name
from mpidata.config.trainers import Trainers

__all__ = ["STREAM", "Job"]

STREAM = ("solvers", "parameters", "validation", "fields", "lengths", "samples", "buffer", "record", "journal")
"""The keys of data from solvers; a job that has only loaders has none of them."""

# Replace the missing sections of a job without solvers.
_NO_SOLVERS = Solvers.model_construct(groups=0)
_NO_PARAMETERS = Parameters.model_construct(count=0)
_IN_FLIGHT_BYTES = 4 << 20
_LIKELY_LENGTH = 10_000  # if no limit is declared


def _file_name(name: str) -> str:
    if len(name) > 200:
        refuse([((), f"{{key}} has {len(name)} letters, too many for a folder. Use at most 200.")])
    if not all(c.isalnum() or c in "._-" for c in name) or not name.isascii() or name[:1] in ("", ".", "-"):
        refuse([((), f"{{key}} is {name!r}. Use letters, digits, '.', '_' and '-', a letter or digit first.")])
    return name


def _logger(name: str) -> str:
    if name != "tensorboard" and ":" not in name:
        refuse([((), f"{{key}} is {name!r}. Write 'tensorboard', or \"module:Class\" for a class of your own.")])
    return name if name == "tensorboard" else object_name(name)


class Job(Model):
    """A checked job file. Equal jobs have equal keys; which file they came from does not count."""

    name: Annotated[Text, AfterValidator(_file_name)] = fixed_key(
        default="job",
        description="Name of the job and of the folder of its runs.",
        json_schema_extra={"default": "the job file's name without suffix"},
    )
    seed: Annotated[int, Strict(), Key(ge=0, le=2**63 - 1)] = fixed_key(
        default=0, description="Seed of all random draws: parameters and batches."
    )
    output: Text = fixed_key(default="runs", description="Folder of the run folders: `<output>/<name>/1`, `2`, ...")
    folder: Path = free_key(
        default=Path("."),
        description="The folder that relative paths start from, and in which all programs run. The job file in a run "
        "folder has this key, so it can be run again as it is.",
        json_schema_extra={"kind": "path", "default": "the job file's folder"},
    )
    trainers: Trainers = free_key(description="The ranks that train.", examples=["{program: [python, train.py]}"])
    solvers: Solvers = free_key(
        default=_NO_SOLVERS,
        description="The ranks that simulate. Required, with `parameters` and `fields`, if there are no `loaders`.",
        examples=["{program: [./heat2d]}"],
        json_schema_extra={"default": "none"},
    )
    parameters: Parameters = fixed_key(
        default=_NO_PARAMETERS,
        description="The simulations to run; required if there are `solvers`.",
        examples=["{count: 200, space: {alpha: [0.01, 0.1]}}"],
        json_schema_extra={"default": "none"},
    )
    loaders: Loaders | None = free_key(
        default=None,
        description="The ranks that read and prepare existing data, in addition to `solvers` or instead of them. "
        "Without this key there are none.",
        examples=["{ranks: 8}"],
    )
    inference: Inference | None = free_key(
        default=None,
        description="The ranks that evaluate the model for solvers. Without this key there are none.",
        examples=['{ranks: 2, function: "net:answer"}'],
    )
    servers: Servers | None = free_key(
        default=None,
        description="The ranks that store the parameters of the model if the script uses "
        "[mpidata.ParameterServer](parameter-server.md). Without this key there are none.",
        examples=["{ranks: 2}"],
    )
    validation: Validation = fixed_key(default=Validation(), description="Simulations that are never trained on.")
    fields: dict[FieldName, FieldEntry] = fixed_key(
        default={},
        min_length=1,
        description="The arrays of a sample, by name; required if there are `solvers`. A name consists of at most "
        "127 letters, digits and underscores, and is not `time`, `step`, `simulation` or `parameters`.",
        examples=["{temperature: {shape: [64, 64]}}"],
        json_schema_extra={"kind": "mapping from name to field, at least one", "default": "none"},
    )
    lengths: dict[FieldName, LengthEntry] = fixed_key(
        default={},
        description="Limits of the lengths, which are names in the `shape` of fields.",
        examples=["{nodes: {at_most: 6000}}"],
        json_schema_extra={"kind": "mapping from name to length", "default": "none"},
    )
    samples: Samples = fixed_key(default=Samples(), description="What a sample is: one step, or a window of several.")
    buffer: Buffer = free_key(default=Buffer(), description="The buffer in which samples wait on a trainer.")
    checkpoint: Checkpoint | None = free_key(
        default=None,
        description="Checkpoints, from which an interrupted job resumes. Without this key they are written only when "
        "the job is asked to end (SIGTERM, SIGUSR1), and when the training script requests one.",
        examples=["{every_s: 300, keep: 2}"],
    )
    record: Record | None = fixed_key(
        default=None,
        description="Files to which the trainers write the samples that they receive. Without this key there are none.",
        examples=["{path: samples}"],
    )
    journal: Boolean = fixed_key(
        default=False,
        description="Whether each trainer keeps a journal in the run folder, from which `mpidata run --replay RUN` "
        "repeats the same batches.",
    )
    log: Annotated[tuple[Annotated[Text, AfterValidator(_logger)], ...], BeforeValidator(argument_list)] = free_key(
        default=(),
        description="Where the values that the script reports are written while the job runs, in addition to the run "
        "folder. `tensorboard` writes TensorBoard's event files into `tensorboard/` of the run folder. `module:Class` "
        "passes the values to a class that can be imported from the job file's folder.",
        examples=['[tensorboard, "tracking:Tracker"]'],
        json_schema_extra={"kind": "list of texts", "default": "none"},
    )
    launch: Launch = free_key(default=Launch(), description="How the job is started.")
    slurm: Slurm = free_key(default=Slurm(), description="What `mpidata submit` requests from Slurm.")

    _path: Path = PrivateAttr(default=Path("job.yaml"))
    _notes: tuple[str, ...] = PrivateAttr(default=())

    @property
    def path(self) -> Path:
        """The file from which this job was read."""
        return self._path

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for the user for each key of the file that has no effect or an old name."""
        return self._notes

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of the columns of a sample's parameters."""
        return tuple(self.parameters.space)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names, with which simulations are drawn and sent: with `parameters.weights` the last is the weight."""
        return (*self.parameter_names, *((WEIGHT,) if self.parameters.weights else ()))

    @property
    def simulations(self) -> int:
        """Number of simulations to train on."""
        if self.parameters.sampler == "grid":
            return self.parameters.grid_size
        return self.parameters.count or 0

    @property
    def generation(self) -> int:
        """Number of simulations that a sampler that learns draws at a time."""
        return self.parameters.generation or self.solvers.groups

    @property
    def learners(self) -> int:
        """Number of ranks for the sampler, including spares."""
        return 1 + self.parameters.learner_spares if self.parameters.learner_rank else 0

    @property
    def world_size(self) -> int:
        """Number of ranks that start together; with `start: split`, these include solvers and loaders."""
        solvers, loaders = self.solvers, self.loaders
        groups = solvers.groups + solvers.spares if solvers.start == "split" else 0
        more = loaders.ranks + loaders.spares if loaders is not None and loaders.start == "split" else 0
        more += self.inference.ranks + self.inference.spares if self.inference is not None else 0
        more += self.learners
        more += self.servers.ranks if self.servers is not None else 0
        return 1 + self.trainers.ranks + self.trainers.spares + groups * solvers.ranks_per_group + more

    @property
    def spawns(self) -> bool:
        """Whether solvers or loaders are started while the job runs."""
        return "spawn" in (self.solvers.start, self.loaders.start if self.loaders is not None else "split")

    @property
    def in_flight(self) -> int:
        """Number of samples of a solver rank in flight; with too few small ones a trainer waits for the solver."""
        if self.solvers.in_flight is not None:
            return self.solvers.in_flight
        limits = {name: length.at_most or _LIKELY_LENGTH for name, length in self.lengths.items()}
        fields = [field for field in self.fields.values() if field.per == "step"]
        sample = sum(field.bytes({field.length or "": _LIKELY_LENGTH, **limits}) for field in fields)
        return 8 if 8 * sample <= _IN_FLIGHT_BYTES * self.solvers.ranks_per_group else 4

    @property
    def saving(self) -> Checkpoint:
        """When checkpoints are written; without the key, none is written periodically."""
        return self.checkpoint or Checkpoint(every_s=0.0)

    @property
    def layout(self) -> str:
        """The number of ranks of each role, in words."""
        solvers, trainers, loaders = self.solvers, self.trainers.ranks, self.loaders
        kinds = []
        if self.trainers.spares:
            kinds.append(("", "split", self.trainers.spares))
        if solvers.groups:
            groups = f"{_count(solvers.groups, 'group')} of {solvers.ranks_per_group}"
            kinds.append((groups, solvers.start, solvers.spares))
        if loaders is not None:
            kinds.append((_count(loaders.ranks, "loader"), loaders.start, loaders.spares))
        if self.inference is not None:
            kinds.append((_count(self.inference.ranks, "inference rank"), "split", self.inference.spares))
        if self.learners:
            kinds.append(("1 learner", "split", self.parameters.learner_spares))
        if self.servers is not None:
            kinds.append((_count(self.servers.ranks, "server"), "split", 0))
        each = self.trainers.ranks_per_replica
        now = [f"1 scheduler, {_count(trainers, 'trainer')}" + (f" (replicas of {each})" if each > 1 else "")]
        for what, start, spares in kinds:
            now += [what] if start == "split" and what else []
            now += [_count(spares, "spare")] if start == "split" and spares else []
        later = [f"; {what} started later" for what, start, _ in kinds if start == "spawn"]
        return (" and ".join([", ".join(now[:-1]), now[-1]]) if now[1:] else now[0]) + "".join(later)

    def resolved(self) -> dict[str, Any]:
        """All keys and their values as plain data."""
        absent = set() if self.solvers.groups else set(STREAM)
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=absent)

    def __eq__(self, other: object) -> bool:
        """Compare all keys; the path does not count."""
        return isinstance(other, Job) and self.model_dump() == other.model_dump()

    __hash__ = None  # type: ignore[assignment]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"
