"""The plan: what every rank of a job must know, as a small text file written before anything starts."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mpidata.errors import LaunchError, MpidataError
from mpidata.native import constants
from mpidata.run.own_files import read_own
from mpidata.run.plan_parts import (
    HEADER,
    SINGLE,
    TYPES,
    Field,
    PlanReader,
    Program,
    keys_of,
    loaders_of,
    programs_of,
    ranges_of,
    record_path_of,
    statistics_of,
    texts_of,
    whole_of,
)

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["Field", "Plan", "Program"]


@dataclasses.dataclass(frozen=True)
class Plan:
    """The layout of a job and its data.

    World ranks: 0 is the scheduler, then come the trainers, then, with `start` split, the solver groups of
    `ranks_per_group` ranks each: `groups` that run at once and `spares`; at last, with `loader_start` split, the
    `loaders` and `loader_spares`. What is spawned has the next numbers. Without solvers `groups` is 0. Simulations 0 to
    `simulations` - 1 are trained on, the next `validation` ones are not.

    A sample is a window of `samples_window` steps, `samples_stride` apart; `samples_run` of them that begin one after
    the other belong to one trainer.

    `tolerate` is -1 where every simulation may be set aside; `checkpoint` is the number of the checkpoint to start
    from, 0 for none; `attempt` counts the starts of the run folder from 1; `record_path` is None where nothing is
    recorded; `repeats` is 0 where there is no budget of draws; `replay` is a run folder, or None; `carried` is the
    number of ranks of a program that is none of the job, or 0; `carried_each`: it is started for each simulation.
    `statistics` has for each field the axis of the channels by which its statistics are kept, or -1, and is empty where
    none are kept; `ranges` is a JSON list of the ranges of the parameters; `whole` names those that are whole numbers.
    `texts` has the texts of those that are texts, whose numbers are places in there.
    """

    run: Path
    folder: Path
    seed: int
    world: int
    trainers: int
    groups: int
    ranks_per_group: int
    in_flight: int
    simulations: int
    validation: int
    policy: str
    capacity: int
    watermark: int
    tail: str
    parameters: tuple[str, ...]
    fields: tuple[Field, ...]
    programs: Mapping[str, Program]
    whole: tuple[str, ...] = ()
    texts: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    start: str = "split"
    lifetime: str = "pool"
    spares: int = 0
    retries: int = 2
    timeout_s: float = 60.0
    start_timeout_s: float = 600.0
    join_timeout_s: float = 600.0
    tolerate: int = -1
    hosts: tuple[str, ...] = ()
    fault_tolerance: str = "none"
    checkpoint: int = 0
    attempt: int = 1
    checkpoint_every_s: float = 0.0
    checkpoint_keep: int = 2
    checkpoint_within_s: float = 60.0
    record_path: Path | None = None
    record_every: int = 1
    record_when_slow: str = "slow_down"
    loaders: int = 0
    loader_spares: int = 0
    loader_start: str = "split"
    loader_retries: int = 2
    loader_timeout_s: float = 60.0
    loader_start_timeout_s: float = 600.0
    loader_tolerate: int = 0
    repeats: float = 0.0
    samples_window: int = 1
    samples_stride: int = 1
    samples_run: int = 1
    carried: int = 0
    carried_each: int = 0
    journal: int = 0
    replay: Path | None = None
    statistics: str = ""
    ranges: str = ""

    @classmethod
    def of(cls, job: Job, run: Path, fault_tolerance: str = "none", checkpoint: int = 0, attempt: int = 1) -> Plan:
        """Plan a job, as `mpidata.config.load_job` returns it, that is to run in a folder, which need not exist.

        `fault_tolerance` is `ulfm` or `none`; `checkpoint` is the one to start from, 0 for none; `attempt` counts the
        starts of the run folder, from 1.
        """
        solvers, saving, record = job.solvers, job.saving, job.record
        run = Path(os.path.abspath(run))
        return cls(
            run=run,
            folder=job.folder,
            seed=job.seed,
            world=job.world_size,
            trainers=job.trainers.ranks,
            groups=solvers.groups,
            ranks_per_group=solvers.ranks_per_group,
            in_flight=job.in_flight,
            simulations=job.simulations,
            validation=job.validation.count,
            policy=job.buffer.policy,
            capacity=job.buffer.capacity,
            watermark=job.buffer.watermark,
            repeats=job.buffer.repeats or 0.0,
            samples_window=job.samples.window,
            samples_stride=job.samples.stride,
            samples_run=job.samples.run_steps,
            carried=solvers.carried.ranks if solvers.carried is not None else 0,
            carried_each=int(solvers.carried is not None and solvers.lifetime == "simulation"),
            journal=int(job.journal and attempt == 1),  # a resumed run's beginning is in no journal
            statistics=statistics_of(job),
            ranges=ranges_of(job),
            tail=job.buffer.tail,
            parameters=job.parameter_names,
            whole=whole_of(job),
            texts=texts_of(job),
            fields=tuple(Field(name, field.dtype, field.shape) for name, field in job.fields.items()),
            programs=programs_of(job),
            start=solvers.start,
            lifetime="pool" if solvers.carried is not None else solvers.lifetime,
            spares=solvers.spares,
            retries=solvers.retries,
            timeout_s=solvers.timeout_s,
            join_timeout_s=job.launch.join_timeout_s,
            start_timeout_s=solvers.start_timeout_s or max(600.0, solvers.timeout_s),
            tolerate=-1 if solvers.tolerate is None else solvers.tolerate,
            hosts=solvers.hosts or (),
            fault_tolerance=fault_tolerance,
            checkpoint=checkpoint,
            attempt=attempt,
            checkpoint_every_s=saving.every_s,
            checkpoint_keep=saving.keep,
            checkpoint_within_s=saving.within_s,
            record_path=record_path_of(job, run),
            record_every=record.every if record is not None else 1,
            record_when_slow=record.when_slow if record is not None else "slow_down",
            **loaders_of(job),
        )

    @classmethod
    def parse(cls, text: str) -> Plan:
        """Read a plan's text; raises MpidataError if it is not one."""
        lines = text.split("\n")
        if lines[0] != HEADER:
            raise MpidataError(f"The plan begins with {lines[0]!r}, not {HEADER!r}. Use one version of mpidata only.")
        reader = PlanReader()
        for number, line in enumerate(lines[1:], start=2):
            if line:
                try:
                    reader.take(line)
                except ValueError as error:
                    message = f"Line {number} of the plan is {line!r}: {error}. Start the job again."
                    raise MpidataError(message) from None
        missing = [key for key in SINGLE if key not in reader.single]
        several = {"solver": reader.single.get("groups"), "loader": reader.single.get("loaders", "0")}
        needed = [role for role in constants.ROLES if several.get(role) != "0"]
        missing += [f"program {role}" for role in needed if role not in reader.programs]
        if missing:
            raise MpidataError(f"The plan lacks {', '.join(missing)}. Start the job again.")
        return cls(
            **{key: TYPES.get(key, int)(value) for key, value in reader.single.items()},
            hosts=tuple(reader.hosts),
            parameters=tuple(reader.parameters),
            whole=tuple(reader.whole),
            texts=reader.texts,
            fields=tuple(reader.fields),
            programs={
                role: Program(tuple(arguments), environment)
                for role, (arguments, environment) in reader.programs.items()
            },
        )

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        """Read the plan file of a run folder; raises MpidataError if it cannot be read, is another's, or no plan."""
        try:
            text = read_own(Path(path))
        except (OSError, UnicodeDecodeError) as error:
            raise MpidataError(f"Cannot read the plan {path}: {error}. Start the job with `mpidata run`.") from None
        try:
            return cls.parse(text)
        except MpidataError as error:
            raise MpidataError(f"Cannot read the plan {path}: {error}") from None

    def text(self) -> str:
        """Write the plan as text, for the file `plan` of the run folder; raises MpidataError on a newline."""
        lines = keys_of(self)
        lines += [f"host {host}" for host in self.hosts]
        lines += [f"parameter {name}" for name in self.parameters]
        lines += [f"whole {name}" for name in self.whole]
        lines += [f"text {name} {text}" for name, texts in self.texts.items() for text in texts]
        lines += [" ".join(["field", f.name, f.dtype, str(len(f.shape)), *map(str, f.shape)]) for f in self.fields]
        for role in (role for role in constants.ROLES if role in self.programs):
            lines.append(f"program {role}")
            lines += [f"argument {argument}" for argument in self.programs[role].arguments]
            lines += [f"environment {key}={value}" for key, value in self.programs[role].environment.items()]
        for line in lines:
            if "\n" in line or "\0" in line:
                raise MpidataError(f"A newline or a NUL cannot go into the plan: {line!r}. Remove it.")
        return "\n".join(lines) + "\n"

    def role_of(self, rank: int) -> tuple[str, int, int]:
        """Role of a rank of the world.

        Parameters
        ----------
        rank : int
            0 to `world` - 1.

        Returns
        -------
        role : str
            `scheduler`, `trainer`, `solver` or `loader`.
        index : int
            Which trainer, group or loader; 0 for the scheduler.
        rank_in_group : int
            Rank within the solver group, else 0.

        Raises
        ------
        LaunchError
            The rank is outside the world of the plan.
        """
        if not 0 <= rank < self.world:
            raise LaunchError(
                f"There is no rank {rank} in this job of {self.world} ranks. Start it with -n {self.world}."
            )
        if rank == 0:
            return "scheduler", 0, 0
        if rank <= self.trainers:
            return "trainer", rank - 1, 0
        group, rank_in_group = divmod(rank - 1 - self.trainers, self.ranks_per_group)
        if group < self.groups_in_world:
            return "solver", group, rank_in_group
        return "loader", rank - 1 - self.trainers - self.groups_in_world * self.ranks_per_group, 0

    @property
    def groups_in_world(self) -> int:
        """Number of groups that start with the world, spares included."""
        return self.groups + self.spares if self.start == "split" else 0

    @property
    def loaders_in_world(self) -> int:
        """Number of loaders that start with the world, spares included."""
        return self.loaders + self.loader_spares if self.loader_start == "split" else 0

    @property
    def has_stream(self) -> bool:
        """Whether there are solvers, whose samples the trainers get."""
        return self.groups > 0

    @property
    def span(self) -> int:
        """Steps from the first one of a sample to its last."""
        return (self.samples_window - 1) * self.samples_stride

    @property
    def n_moments(self) -> int:
        """Number of channels of all fields, as of the statistics; 0 where there are none."""
        axes = zip(self.fields, map(int, self.statistics.split()), strict=False)
        return sum(field.shape[axis] if axis >= 0 else 1 for field, axis in axes)

    @property
    def channel_axes(self) -> dict[str, int]:
        """Axis of the channels of the fields whose statistics are kept by channel."""
        axes = zip(self.fields, map(int, self.statistics.split()), strict=False)
        return {field.name: axis for field, axis in axes if axis >= 0}

    def rank_of(self, group: int, rank_in_group: int) -> int | None:
        """Rank of the world of a group's rank; None for a group that was spawned."""
        if group >= self.groups_in_world:
            return None
        return 1 + self.trainers + group * self.ranks_per_group + rank_in_group

    def rank_of_loader(self, loader: int) -> int | None:
        """Rank of the world of a loader; None for one that was spawned."""
        first = 1 + self.trainers + self.groups_in_world * self.ranks_per_group
        return first + loader if loader < self.loaders_in_world else None
