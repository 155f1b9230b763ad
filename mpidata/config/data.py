"""`fields`, `samples`, `buffer`, `validation`, `checkpoint`, `record`: what a sample holds, and what is kept."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Strict, Tag, model_validator
from typing_extensions import Self

from mpidata.config.base import (
    Boolean,
    Count,
    Key,
    Model,
    Natural,
    Positive,
    Text,
    Words,
    fixed_key,
    free_key,
    refuse,
)
from mpidata.native import constants
from mpidata.sizes import parse_size

__all__ = [
    "Buffer",
    "Checkpoint",
    "FieldEntry",
    "FieldName",
    "LengthEntry",
    "Record",
    "Samples",
    "Validation",
    "identifier",
]

MAX_ELEMENTS = 2**31 - 1
_UNITS = "KiB, MiB, GiB or TiB (of 1024), or KB, MB, GB or TB (of 1000), for example 2 GiB"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def identifier(name: str) -> str:
    """Refuse a name that is not an identifier."""
    if not _NAME.fullmatch(name):
        refuse([((), f"{{key}}: {name!r} is not a name. Use letters, digits and underscores, no digit first.")])
    most = constants.NAME_MAX - 1  # without the NUL
    if len(name) > most:
        refuse([((), f"{{key}}: the name has {len(name)} letters. Use at most {most}.")])
    if keyword.iskeyword(name):
        refuse([((), f"{{key}}: {name!r} is a Python keyword, so scripts could not use it. Rename it.")])
    return name


def _not_reserved(name: str) -> str:
    if name in ("time", "step", "simulation", "parameters"):
        refuse([((), f"{{key}}: a field cannot be named {name!r}: every sample has a {name!r} of its own. Rename it.")])
    return name


FieldName = Annotated[str, AfterValidator(identifier), AfterValidator(_not_reserved)]


_Extent = Annotated[
    Annotated[Count, Tag("<extent>")] | Annotated[FieldName, Tag("<length>")],
    Discriminator(lambda value: "<length>" if isinstance(value, str) else "<extent>"),
]


def _extents(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _size(shape: tuple[int | str, ...]) -> tuple[int | str, ...]:
    if len(shape) > constants.MAX_NDIM:
        raise ValueError("too many dimensions")
    names = [extent for extent in shape if isinstance(extent, str)]
    if len(names) > 1:
        fix = (
            "Only one dimension of a field can have a length that differs between samples. Split or flatten the field."
        )
        refuse([((), f"{{key}} has the names {' and '.join(names)}. {fix}")])
    if math.prod(extent for extent in shape if isinstance(extent, int)) > MAX_ELEMENTS:
        refuse([((), f"{{key}} is {list(shape)}, more than {MAX_ELEMENTS} elements. Split the field into several.")])
    return shape


class LengthEntry(Model):
    """A length: a name in the shape of fields, for an extent that differs between samples."""

    at_most: Count | None = fixed_key(
        default=None,
        description="Largest length in a sample. A longer one ends the job. `mpidata run --dry-run` computes the "
        "memory from it.",
        examples=["6000"],
    )


class FieldEntry(Model):
    """An array that the solver sends in every step."""

    dtype: Annotated[str, Words(lambda: constants.DTYPES)] = fixed_key(
        "float32",
        description="Type of the elements on the trainers. A solver may also put float64 into float32, float64 or "
        "float32 into float16 or bfloat16, and complex128 into complex64.",
    )
    shape: Annotated[
        tuple[_Extent, ...],
        BeforeValidator(_extents),
        AfterValidator(_size),
        Key(json_schema_extra={"kind": "list of 0 to 6 whole numbers, each at least 1"}),
    ] = fixed_key(
        description="Extents of the whole field in C order: the last index varies fastest in memory (a Fortran array "
        "`u(nx, ny)` has `shape: [ny, nx]`). `[]` is a scalar. At most 2147483647 elements. One extent may be a name, "
        "as in `[nodes, 2]`: a length that differs between samples, and may be 0. Fields that share a name have the "
        "same length in a sample.",
        examples=["[64, 64]"],
    )
    index: FieldName | None = fixed_key(
        default=None,
        description="The length along which the values of this field count. For example, the edges of a mesh contain "
        "positions along its nodes. The values are checked against the length, and in a batch they count along the "
        "joined samples. For int32 and int64.",
        examples=["nodes"],
    )
    base: Annotated[int, Strict(), Key(ge=0, le=1)] = fixed_key(
        default=0,
        description="With `index`: the number from which the solver counts, 0 or 1. The trainers get values from 0.",
    )
    optional: Boolean = fixed_key(
        default=False,
        description="Whether a step may omit the field. The sample then has zeros in its place, or nothing if no "
        "other field of the sample has its length. `<name>_given` in a batch marks the samples that have the field.",
    )
    per: Literal["step", "simulation"] = fixed_key(
        default="step",
        description="How often the field is put. `simulation`: once, before the first step, for example a mesh. Such a "
        "field is sent and held once for all steps.",
    )
    statistics: Boolean | None = fixed_key(
        default=None,
        description="Whether the field has statistics in a job with `samples.statistics`. Fields of bool, complex64 "
        "and complex128, and those with `index`, never have them.",
        json_schema_extra={"kind": "true or false", "default": "true; false for bool and complex dtypes, and indices"},
    )

    @property
    def length(self) -> str | None:
        """Name of its length, which differs between samples."""
        return next((extent for extent in self.shape if isinstance(extent, str)), None)

    def bytes(self, lengths: Mapping[str, int]) -> int:
        """Return the bytes of the whole array with these lengths; if its length is missing, per index along it."""
        extents = [lengths.get(extent, 1) if isinstance(extent, str) else extent for extent in self.shape]
        return math.prod(extents) * constants.DTYPES[self.dtype].size

    @property
    def has_statistics(self) -> bool:
        """Whether statistics of the field are kept in a job with `samples.statistics`."""
        possible = self.index is None and constants.DTYPES[self.dtype].has_statistics
        return possible and self.statistics is not False

    @model_validator(mode="after")
    def _statistics_possible(self) -> Self:
        impossible = self.statistics is True and not self.has_statistics
        kind = "indices" if self.index is not None else f"fields of {self.dtype}"
        fix = f"{kind} have no statistics. Remove the key."
        refuse([(("statistics",), f"{{key}} is true, but {fix}")] if impossible else [])
        return self


def _default_watermark(data: dict[str, Any]) -> int:
    capacity = data.get("capacity", 0)  # if it is in bytes, `fit_watermark` corrects this
    return 0 if data.get("policy") == "fifo" or isinstance(capacity, str) else capacity // 10


def _bytes(text: str) -> str:
    size = parse_size(text)
    if size is None or not 1 <= size < 1 << 60:
        refuse([((), f"{{key}} is {text!r}. It must be a whole number of samples, or bytes with a unit: {_UNITS}.")])
    return text


_Capacity = Annotated[
    Annotated[Count, Tag("<samples>")] | Annotated[str, AfterValidator(_bytes), Tag("<bytes>")],
    Discriminator(lambda value: "<bytes>" if isinstance(value, str) else "<samples>"),
]


class Buffer(Model):
    """The buffer of each trainer, in which samples wait to be drawn into batches."""

    policy: Literal["fifo", "firo", "reservoir"] = fixed_key(
        default="reservoir",
        description="Which sample is drawn. `fifo`: the oldest, each sample once. `firo`: a random one, each sample "
        "once. `reservoir`: a random one, any number of times; a new sample replaces one that has been drawn.",
    )
    capacity: _Capacity = free_key(
        default=1000,
        description="Largest number of samples in the buffer of each trainer; at least the batch size. Or their bytes, "
        f"with a unit: {_UNITS}. Values and lengths of samples count.",
        json_schema_extra={"kind": "size like 2 GiB, or a whole number, at least 1"},
    )
    watermark: Natural = free_key(
        default_factory=_default_watermark,
        description="Number of samples that must be present before one is drawn, as long as solvers send. It must be "
        "less than the capacity with firo, at most the capacity with a reservoir, and has no effect with fifo. With a "
        "capacity in bytes, a full buffer counts as above the watermark.",
        json_schema_extra={
            "default": "a tenth of `capacity`; 0 for fifo, and with a capacity in bytes if samples have lengths"
        },
    )
    tail: Literal["drop", "repeat"] = free_key(
        default="drop",
        description="What happens to the last samples if they do not make the same number of full batches on each "
        "trainer: `drop` drops them, `repeat` fills the batches with samples that were drawn before.",
    )

    repeats: Annotated[float, Strict(), Key(ge=1, allow_inf_nan=False)] | None = free_key(
        default=None,
        description="With a reservoir: the mean number of draws of each sample. Training then waits for samples, and "
        "solvers for training, to keep this number of draws for each sample received; `tail` has no effect. Without "
        "this key samples are drawn as fast as the training asks for them. No effect with fifo and firo.",
        json_schema_extra={"kind": "number, at least 1", "default": "none"},
        examples=["2.0"],
    )

    pinned: Boolean = free_key(
        default=False,
        description="Whether the memory of the buffer is page-locked, so that a GPU reads it without a copy by the "
        "driver. The trainers need torch with CUDA or ROCm. The memory is locked for `torch.cuda.current_device()` at "
        "the time when the script joins the job.",
    )

    @model_validator(mode="after")
    def _watermark_fits(self) -> Self:
        fix = ""
        if isinstance(self.capacity, str):
            return self
        if self.policy == "firo" and self.watermark >= self.capacity:
            fix = f"It must be less than 'buffer.capacity', {self.capacity}, with firo: lower it, or raise the capacity"
        elif self.policy == "reservoir" and self.watermark > self.capacity:
            fix = f"It must be at most 'buffer.capacity', {self.capacity}: lower it, or raise the capacity"
        refuse([(("watermark",), f"'buffer.watermark' is {self.watermark}. {fix}.")] if fix else [])
        return self

    def holds(self, fields: Mapping[str, FieldEntry]) -> int | None:
        """Return for how many steps with these fields it has room; None if their sizes differ."""
        if isinstance(self.capacity, int):
            return self.capacity
        of_step = [field for field in fields.values() if field.per != "simulation"]
        if any(field.length for field in of_step):
            return None
        return (parse_size(self.capacity) or 0) // max(1, sum(field.bytes({}) for field in of_step))


class Validation(Model):
    """Simulations whose samples are never trained on."""

    count: Natural = fixed_key(
        default=0,
        description="Number of simulations in addition to `parameters.count` whose samples never enter the buffer; "
        "`stream.validation()` returns them.",
    )


class Checkpoint(Model):
    """Checkpoints of the buffers, the received samples, all simulations, and what the training script registered."""

    every_s: Annotated[float, Strict(), Key(ge=0, allow_inf_nan=False)] = free_key(
        default=300.0, description="Seconds between checkpoints; with 0 none is written periodically."
    )
    keep: Count = free_key(default=2, description="Number of checkpoints to keep: the latest ones.")
    within_s: Positive = free_key(
        default=60.0,
        description="Longest time in seconds from SIGTERM, SIGUSR1 or Ctrl-C to the end of the job, including the "
        "checkpoint.",
    )


class Record(Model):
    """Files with the samples that the trainers receive, which `mpidata.RecordedDataset` reads."""

    path: Text | None = fixed_key(
        default=None,
        description="Folder of the files, one file for each trainer.",
        json_schema_extra={"default": "`record` in the run folder"},
    )
    every: Count = fixed_key(default=1, description="Write every n-th step of each simulation; 1 writes all.")
    when_slow: Literal["slow_down", "skip"] = free_key(
        default="slow_down",
        description="What happens if samples arrive faster than the disk can write them: `slow_down` makes the "
        "solvers wait, `skip` leaves samples out of the files. The log reports this.",
    )


class Samples(Model):
    """What a sample is: one step of a simulation, or a window of several."""

    window: Annotated[Count, Key(le=1024)] = fixed_key(
        default=1,
        description="Number of steps in a sample: 1, or a [window](buffers.md#windows-of-several-steps) of steps of "
        "one simulation. A window starts at each step that is followed by enough others in the simulation.",
        examples=["3"],
    )
    stride: Annotated[Count, Key(le=1_000_000)] = fixed_key(
        default=1, description="Distance between the steps of a window, in steps: 1 for consecutive steps."
    )
    run: Annotated[Count, Key(le=1_000_000_000)] | None = fixed_key(
        default=None,
        description="With windows: number of consecutive windows that go to the same trainer, at least (`window` - "
        "1) × `stride`. The last ones need (`window` - 1) × `stride` steps of the next run, which are sent to both "
        "trainers.",
        json_schema_extra={"default": "10 × (`window` - 1) × `stride`; 1 without windows"},
    )

    statistics: Annotated[
        Annotated[Boolean, Tag("<switch>")] | Annotated[dict[str, Annotated[int, Strict()]], Tag("<axes>")],
        Discriminator(lambda value: "<axes>" if isinstance(value, dict) else "<switch>"),
        Key(json_schema_extra={"kind": "true or false, or mapping from field to the number of its axis"}),
    ] = fixed_key(
        default=False,
        description="Whether the job keeps the mean, standard deviation, minimum and maximum of each field, for "
        "[`stream.statistics()`](training.md#normalization). A mapping names fields whose statistics are by channel, "
        "with the axis of the channels, counted from 0, or -1 for the last one. The statistics of other fields are "
        "over all their values.",
        examples=["{velocity: 0}"],
    )

    @property
    def span(self) -> int:
        """Number of steps from the first step of a window to the last."""
        return (self.window - 1) * self.stride

    @property
    def run_steps(self) -> int:
        """Length of a run, given or default."""
        return self.run or max(1, 10 * self.span)

    @model_validator(mode="after")
    def _run_fits(self) -> Self:
        short = self.run is not None and self.run < self.span
        fix = f"It must be at least (window - 1) x stride, {self.span}: raise it, or leave it out"
        refuse([(("run",), f"'samples.run' is {self.run}. {fix}.")] if short else [])
        return self
