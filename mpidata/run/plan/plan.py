"""The plan: what every rank of a job must know, in a small text file that is written before the start."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

from mpidata.errors import MpidataError
from mpidata.native import constants
from mpidata.run.own_files import read_own
from mpidata.run.plan.buffer import BufferSection, buffer_of
from mpidata.run.plan.lines import HEADER, INFERENCE, LOADERS, RECORD, SINGLE, WHERE_GIVEN, keys_in, types_of
from mpidata.run.plan.parameters import ParametersSection, parameters_of
from mpidata.run.plan.programs import ProgramsSection, programs_of
from mpidata.run.plan.ranks import RanksSection, ranks_of
from mpidata.run.plan.record import RecordSection, record_of
from mpidata.run.plan.samples import SamplesSection, samples_of
from mpidata.run.plan.saving import SavingSection, saving_of
from mpidata.run.plan.start import StartSection, start_of

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["Plan"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan(
    StartSection,
    RanksSection,
    ParametersSection,
    SamplesSection,
    BufferSection,
    SavingSection,
    RecordSection,
    ProgramsSection,
):
    """The layout of a job and its data: the keys of all sections."""

    @classmethod
    def of(cls, job: Job, run: Path, fault_tolerance: str = "none", checkpoint: int = 0, attempt: int = 1) -> Plan:
        """Plan a job, as returned by `mpidata.config.load_job`, that is to run in a folder, which need not exist.

        `fault_tolerance` is `ulfm` or `none`; `checkpoint` is the one to start from, 0 for none; `attempt` counts the
        starts of the run folder, from 1.
        """
        run = Path(os.path.abspath(run))
        sections = (
            start_of(job, run, fault_tolerance, checkpoint, attempt),
            ranks_of(job),
            parameters_of(job),
            samples_of(job),
            buffer_of(job),
            saving_of(job),
            record_of(job, run),
            programs_of(job, checkpoint),
        )
        return cls(**{key: value for section in sections for key, value in vars(section).items()})

    @classmethod
    def parse(cls, text: str) -> Plan:
        """Read a plan's text; raises MpidataError if it is not one."""
        return cls(**keys_in(text, types_of(cls)))

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        """Read a plan file; raises MpidataError if it is unreadable, invalid or belongs to another user."""
        try:
            text = read_own(Path(path))
        except (OSError, UnicodeDecodeError) as error:
            raise MpidataError(f"Cannot read the plan {path}: {error}. Start the job with `mpidata run`.") from None
        try:
            return cls.parse(text)
        except MpidataError as error:
            raise MpidataError(f"Cannot read the plan {path}: {error}") from None

    def text(self) -> str:
        """Return the plan as text, for the file `plan` of the run folder; raises MpidataError on a newline."""
        keys = SINGLE + (RECORD if self.record_path is not None else ()) + (LOADERS if self.loaders else ())
        keys += INFERENCE if self.inference else ()
        given = [key for key in WHERE_GIVEN if getattr(self, key) != getattr(type(self), key)]
        lines = [HEADER, *(f"{key} {getattr(self, key)}" for key in (*keys, *given))]
        lines += [f"host {host}" for host in self.hosts]
        lines += [f"parameter {name}" for name in self.parameters]
        lines += [f"whole {name}" for name in self.whole]
        lines += [f"text {name} {text}" for name, texts in self.texts.items() for text in texts]
        lines += [f"length {length.name} {length.at_most}" for length in self.lengths]
        lines += [" ".join(["field", f.name, f.dtype, str(len(f.shape)), *map(str, f.shape)]) for f in self.fields]
        lines += [f"index {f.name} {f.index} {f.base}" for f in self.fields if f.index]
        lines += [f"optional {f.name}" for f in self.fields if f.optional]
        lines += [f"constant {f.name}" for f in self.fields if f.per_simulation]
        for role in (role for role in constants.ROLES if role in self.programs):
            lines.append(f"program {role}")
            lines += [f"argument {argument}" for argument in self.programs[role].arguments]
            lines += [f"environment {key}={value}" for key, value in self.programs[role].environment.items()]
        for line in lines:
            if "\n" in line or "\0" in line:
                raise MpidataError(f"The plan cannot contain a newline or a NUL: {line!r}. Remove it.")
        return "\n".join(lines) + "\n"
