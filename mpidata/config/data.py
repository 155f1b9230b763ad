"""`fields`, `buffer`, `validation`, `checkpoint`, `record`, `solvers.case`: what a sample holds, and what is kept."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Strict, model_validator
from typing_extensions import Self

from mpidata.config.base import Count, Key, Model, Natural, Positive, Problem, Text, refuse
from mpidata.native.library import Dtype

__all__ = ["Buffer", "Case", "Checkpoint", "FieldEntry", "FieldName", "Output", "Record", "Validation", "identifier"]

MAX_DIMENSIONS = 6
MAX_NAME = 127  # MPIDATA_NAME_MAX of the library, with its end
MAX_ELEMENTS = 2**31 - 1
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def identifier(name: str) -> str:
    """Refuse a name that cannot be written in a program."""
    if not _NAME.fullmatch(name):
        refuse([((), f"{{key}}: {name!r} is not a name. Use letters, digits and underscores, no digit first.")])
    if len(name) > MAX_NAME:
        refuse([((), f"{{key}}: the name has {len(name)} letters. Give it {MAX_NAME} at most.")])
    if keyword.iskeyword(name):
        refuse([((), f"{{key}}: {name!r} is a word of Python, so no program could use it. Rename it.")])
    return name


def _not_reserved(name: str) -> str:
    if name in ("time", "step", "simulation", "parameters"):
        refuse(
            [((), f"{{key}}: a field cannot be named {name!r}, as every sample has a {name!r} of its own. Rename it.")]
        )
    return name


FieldName = Annotated[str, AfterValidator(identifier), AfterValidator(_not_reserved)]


def _extents(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _size(shape: tuple[int, ...]) -> tuple[int, ...]:
    if math.prod(shape) > MAX_ELEMENTS:
        refuse([((), f"{{key}} is {list(shape)}, more than {MAX_ELEMENTS} elements. Split the field into several.")])
    return shape


class FieldEntry(Model):
    """An array that the solver sends at every step."""

    dtype: Dtype = Key(
        "float32", description="Type of the elements on the trainers. If it is float32, a solver may also send float64."
    )
    shape: Annotated[
        tuple[Count, ...],
        BeforeValidator(_extents),
        AfterValidator(_size),
        Key(max_length=MAX_DIMENSIONS, json_schema_extra={"kind": "list of 0 to 6 whole numbers, each at least 1"}),
    ] = Key(
        description="Extents of the whole field in C order: the last index is the fastest in memory "
        "(a Fortran array `u(nx, ny)` has `shape: [ny, nx]`). `[]` for a scalar. At most "
        "2147483647 elements.",
        examples=["[64, 64]"],
    )

    @property
    def bytes(self) -> int:
        """Bytes of the whole array."""
        bits = int(re.sub(r"\D", "", self.dtype))
        return math.prod(self.shape) * bits // 8


def _default_watermark(data: dict[str, Any]) -> int:
    capacity: int = data.get("capacity", 0)
    return 0 if data.get("policy") == "fifo" else capacity // 10


class Buffer(Model):
    """The buffer of each trainer, in which samples wait to be drawn into batches."""

    policy: Literal["fifo", "firo", "reservoir"] = Key(
        default="reservoir",
        description="Which sample is drawn. `fifo`: the oldest, each sample once. `firo`: any that is "
        "present, each sample once. `reservoir`: any that is present, again and again; a new "
        "sample replaces one that has been drawn.",
    )
    capacity: Count = Key(
        default=1000, description="Number of samples that the buffer of each trainer holds; at least the batch size."
    )
    watermark: Natural = Key(
        default_factory=_default_watermark,
        description="Number of samples that must be present before one is drawn, as long as solvers "
        "still send. For firo less than the capacity, for reservoir at most the capacity; "
        "no effect with fifo.",
        json_schema_extra={"default": "a tenth of `capacity`; 0 for fifo"},
    )
    tail: Literal["drop", "repeat"] = Key(
        default="drop",
        description="What happens to the last samples if they do not make the same number of full "
        "batches on each trainer: `drop` leaves them out, `repeat` fills the batches up with "
        "samples that were drawn before.",
    )

    repeats: Annotated[float, Strict(), Key(ge=1, allow_inf_nan=False)] | None = Key(
        default=None,
        description="With a reservoir: how often a sample is drawn in the mean. Training then waits for samples, and "
        "solvers for training, so that there are this many draws for each sample received; `tail` has no effect. "
        "Without this key samples are drawn as often as there is time for. No effect with fifo and firo.",
        json_schema_extra={"kind": "number, at least 1", "default": "none"},
        examples=["2.0"],
    )

    @model_validator(mode="after")
    def _watermark_fits(self) -> Self:
        fix = ""
        if self.policy == "firo" and self.watermark >= self.capacity:
            fix = f"It must be less than 'buffer.capacity', {self.capacity}, with firo: lower it, or raise the capacity"
        elif self.policy == "reservoir" and self.watermark > self.capacity:
            fix = f"It must be at most 'buffer.capacity', {self.capacity}: lower it, or raise the capacity"
        refuse([(("watermark",), f"'buffer.watermark' is {self.watermark}. {fix}.")] if fix else [])
        return self


class Validation(Model):
    """Simulations whose samples are never trained on."""

    count: Natural = Key(
        default=0,
        description="Number of further simulations, besides `parameters.count`, whose samples never enter "
        "the buffer: `stream.validation()` has them.",
    )


class Checkpoint(Model):
    """Checkpoints: the buffers, the ledger, the state of all simulations and what the training script registered."""

    every_s: Annotated[float, Strict(), Key(ge=0, allow_inf_nan=False)] = Key(
        default=300.0, description="Seconds from one checkpoint to the next; with 0 none is written periodically."
    )
    keep: Count = Key(default=2, description="Number of checkpoints that are kept: the latest ones.")
    within_s: Positive = Key(
        default=60.0,
        description="Longest time in seconds from SIGTERM, SIGUSR1 or Ctrl-C to the job's end, with the checkpoint.",
    )


class Record(Model):
    """Files with the samples that the trainers receive, which `mpidata.RecordedDataset` reads."""

    path: Text | None = Key(
        default=None,
        description="Folder of the files, one for each trainer.",
        json_schema_extra={"default": "`record` in the run folder"},
    )
    every: Count = Key(default=1, description="A sample is written every so many steps of a simulation; 1 for all.")
    when_slow: Literal["slow_down", "skip"] = Key(
        default="slow_down",
        description="What happens when samples come faster than the disk can write them: `slow_down` "
        "makes the solvers wait, `skip` leaves samples out of the files. The log says that "
        "this has happened.",
    )


_MARKED = re.compile(r"\s*([A-Za-z_]\w*)\s*(?::([0-9]*(?:\.[0-9]+)?[eEfFgG]))?\s*")


def _marks(given: list[str]) -> list[str]:
    if len(given) != 2 or not all(re.fullmatch(r"[!-~]{1,15}", mark) for mark in given):
        refuse([((), f'{{key}} is {given!r}. Give two texts of 1 to 15 letters without blanks: ["<<", ">>"].')])
    return given


class Case(Model):
    """A folder that each simulation gets as a copy of its own, in which the program runs."""

    folder: Text = Key(description="The folder that is copied.", examples=["case"])
    fill: list[Text] = Key(
        default=[],
        description="Files of it, by patterns, in which `{{alpha}}` stands for the value of a parameter, and "
        "`{{alpha:.6e}}` for it in a format of printf; also `simulation`, `try`, `group`, `ranks` "
        "and, with `carried`, `hosts`.",
        examples=['[input.dat, "system/*"]'],
        json_schema_extra={"kind": "list of texts", "default": "none"},
    )
    link: list[Text] = Key(
        default=[],
        description="Files and folders of it that are linked, not copied: those that the program only reads.",
        examples=["[mesh]"],
        json_schema_extra={"kind": "list of texts", "default": "none"},
    )
    marks: Annotated[list[Text], AfterValidator(_marks)] = Key(
        default=["{{", "}}"],
        description="What stands before and after a name in the files of `fill`, where the program's own files have "
        "double braces.",
        examples=['["<<", ">>"]'],
        json_schema_extra={"kind": "list of two texts"},
    )
    in_: Text | None = Key(
        default=None,
        alias="in",
        description="The folder that holds the copies.",
        json_schema_extra={"default": "`cases` in the run folder"},
    )
    keep: Literal["none", "failed"] = Key(
        default="none",
        description="What is not removed: `failed`, the copies of simulations whose program ended badly, which go to "
        "`failed` in the run folder.",
    )

    def filled(self, folder: Path) -> list[str]:
        """Paths of the files to fill, within the case folder; `folder` is that of the job file."""
        top = folder / self.folder
        found = {path for pattern in self.fill for path in top.glob(pattern) if path.is_file()}
        return sorted(str(path.relative_to(top)) for path in found)

    def problems(self, folder: Path, known: Collection[str]) -> Iterator[Problem]:
        """Look for the files, and for names in them that are none; `try`, `group` and `ranks` are always known."""
        top = folder / self.folder
        if not top.is_dir():
            yield ("solvers", "case", "folder"), f"'solvers.case.folder' is {self.folder!r}, but {top} is no folder."
            return
        for key, names in (("fill", self.fill), ("link", self.link)):
            for i, name in enumerate(names):
                if name.startswith("/") or ".." in Path(name).parts or not any(top.glob(name)):
                    said = f"'solvers.case.{key}[{i}]' is {name!r}, but {top} has no such file"
                    yield ("solvers", "case", key, i), f"{said}. Correct the name."
        known = [*known, "try", "group", "ranks"]
        opens, closes = map(re.escape, self.marks)
        pattern = re.compile(rf"{opens}((?:(?!{opens}|{closes})[^\n])*){closes}")
        for name in self.filled(folder):
            for mark in pattern.finditer((top / name).read_text("utf-8", "replace")):
                word = _MARKED.fullmatch(mark[1])
                if word is None:
                    fix = f"Write {'name'.join(self.marks)} or {'name:.6e'.join(self.marks)}."
                    yield ("solvers", "case", "fill"), f"{top / name} has '{mark[0]}', which cannot be filled. {fix}"
                elif word[1] not in known:
                    fix = f"The names are {', '.join(known)}."
                    yield ("solvers", "case", "fill"), f"{top / name} has '{mark[0]}', but there is no parameter. {fix}"

    def text(self, folder: Path) -> str:
        """Write what carriers need to know of it; `folder` is that of the job file."""
        lines = [f"folder {(folder / self.folder).absolute()}", f"keep {self.keep}", f"marks {' '.join(self.marks)}"]
        lines += [f"in {(folder / self.in_).absolute()}"] if self.in_ is not None else []
        lines += [f"fill {name}" for name in self.filled(folder)] + [f"link {name.rstrip('/')}" for name in self.link]
        return "\n".join(lines) + "\n"


def _object_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", value):
        refuse([((), f'{{key}} is {value!r}. Write it as "module:name", for instance "read:fields".')])
    return value


def _expression(text: str) -> str:
    try:
        if re.compile(text).groups < 1:
            refuse([((), f"{{key}} is {text!r}, which has no group. Put the number into parentheses: 't([0-9.]+)'.")])
    except re.error as error:
        refuse([((), f"{{key}} is {text!r}, which is no regular expression: {error}. Correct it.")])
    return text


class Output(Model):
    """What the program of a simulation writes, and how it is read while the program runs; what was read is removed."""

    files: Text | dict[FieldName, Text] = Key(
        description="Pattern of the files, one a step, in the order of the numbers in their names; or one for each "
        "field. A file is read when the next one is there, or the program has ended.",
        examples=['"out/step_*.npy"'],
        json_schema_extra={"kind": "text, or mapping from field to text"},
    )
    reader: Annotated[Text, AfterValidator(_object_name)] | None = Key(
        default=None,
        description="A function, `module:function`, called with the path of a file and the simulation. It yields "
        "`(time, {field: array})`, as often as the file has steps. Without this key npy, npz and HDF5 files are read.",
        examples=['"read:fields"'],
    )
    time: Annotated[Text, AfterValidator(_expression)] | None = Key(
        default=None,
        description="A regular expression, whose first group in a file's name is the time of its step.",
        examples=['"t([0-9.]+)[.]npy"'],
        json_schema_extra={"default": "the number of the step"},
    )
    success: list[Natural] = Key(
        default=[0],
        description="Exit statuses of a program that has ended well; another one is a failed try.",
        json_schema_extra={"kind": "list of whole numbers"},
    )
