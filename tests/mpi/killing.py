"""Kill solver ranks of a running job at random moments, and compute what the trainers must still receive."""

import contextlib
import csv
import functools
import hashlib
import io
import json
import os
import random
import runpy
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
from heat2d_job import HEAT2D
from jobs import JobFolder, newest_run, ranks_of, variables_of
from waiting import wait_until

STEPS = 100
# How a solver rank ends, and the cause that the summary must give. The last three use preloads/kill_switch.c.
WAYS = {
    signal.SIGKILL: "signal",
    signal.SIGSEGV: "signal",
    signal.SIGSTOP: "silent",
    signal.SIGRTMIN + 1: "exit",
    signal.SIGRTMIN + 2: "abort",
    signal.SIGRTMIN + 3: "exit",
}


def events_of(folder: Path) -> list[dict]:
    """Events of the newest run of the job in a folder."""
    run, found = newest_run(folder), []
    with contextlib.suppress(OSError, ValueError):  # there is no file yet, or its last line is incomplete
        for line in (run / "events.jsonl").read_text().splitlines() if run else []:
            found.append(json.loads(line))
    return found


def solver_ranks(folder: Path, ranks_per_group: int, trainers: int, program: str = "heat2d") -> dict[int, list]:
    """Return the solver programs that run, by group."""
    found: dict[int, list] = {}
    for process in psutil.process_iter():
        try:
            if not variables_of(process).get("MPIDATA_RUN", "").startswith(str(folder)) or process.name() != program:
                continue
            shim = process.parent().cmdline()
            if "--group" in shim:
                group = int(shim[shim.index("--group") + 1])
            else:
                rank = int(variables_of(process)["OMPI_COMM_WORLD_RANK"])
                group = (rank - 1 - trainers) // ranks_per_group
            found.setdefault(group, []).append(process)
        except (psutil.Error, AttributeError, KeyError):
            continue
    return found


def job_processes(folder: Path, kind: str, trainers: int) -> list[psutil.Process]:
    """Return processes that the job needs: `trainer`, `scheduler`, `mpirun`, or the `mpidata-rank` of the first two."""
    found = []
    for process in ranks_of(folder):
        try:
            name, rank = process.name(), int(variables_of(process).get("OMPI_COMM_WORLD_RANK", trainers + 1))
            inner = name != "mpidata-rank" and process.parent().name() == "mpidata-rank"
            if "--group" in (process.parent() if inner else process).cmdline():  # spawned: a world of its own
                continue
            if {
                "trainer": inner and 1 <= rank <= trainers,
                "scheduler": inner and rank == 0,
                "mpirun": name in ("prterun", "mpirun"),
                "mpidata-rank": name == "mpidata-rank" and rank <= trainers,
            }[kind]:
                found.append(process)
        except (psutil.Error, AttributeError):
            continue
    return found


def started_at(pid: int) -> float:
    """Return the start time of a process as by time.time(); psutil's may be up to a second too early."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    since_boot = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - since_boot + ticks / os.sysconf("SC_CLK_TCK")


def since_start(events: list[dict]) -> tuple[list[dict], int]:
    """Return the events since the last start of the job, and the number of its starts."""
    starts = [at for at, event in enumerate(events) if event["event"] == "start"]
    return (events[starts[-1] :] if starts else events), len(starts)


class Killer(threading.Thread):
    """Kills `count` solver ranks of the job in a folder, each of a group that runs simulations.

    Ranks die one after another; with the probability `at_once` the next death follows without a pause.
    """

    # Names in events: what is killed, the event that it works, that it was lost, and that nothing is left to kill.
    what, works, lost, over = "group", "dispatch", "group_lost", "end_of_stream"
    ways = WAYS

    def __init__(self, folder: Path, count: int, seed: int, at_once: float = 0.0, **layout: int | str) -> None:
        super().__init__(daemon=True)
        self.killed: list[tuple[int, int]] = []  # group, signal
        self._folder = folder
        self._count = count
        self._random = random.Random(seed)
        self._at_once = at_once
        self._layout = layout
        self._starts = 0
        self._here: set[int] = set()  # groups of this start that were killed
        self._ended = threading.Event()
        (folder / "kills").touch()  # trainers/census/census.py waits for the kills

    def run(self) -> None:
        try:
            self._kill()
        finally:  # so that nobody waits for kills that will not happen
            self._note("x" * self._count)

    def _kill(self) -> None:
        while len(self.killed) < self._count and not self._ended.is_set():
            if self._random.random() >= self._at_once:
                self._ended.wait(self._random.uniform(0.05, 0.4))
            events, before = since_start(events_of(self._folder))
            if any(event["event"] == self.over for event in events):
                return
            if before > self._starts:  # groups are numbered anew
                self._starts, self._here = before, set()
            # Every rank of a group that was given a simulation has returned from mpidata_init.
            running = {event[self.what]: float(event["time"]) for event in events if event["event"] == self.works}
            lost = {event[self.what] for event in events if event["event"] == self.lost} | self._here
            victims = self._victims({group: at for group, at in running.items() if group not in lost})
            if victims and self._end(*self._random.choice(victims)):
                self._note("x")
            else:
                self._ended.wait(0.05)

    def ranks(self, folder: Path, **layout: int | str) -> dict[int, list]:
        """Return the programs that may be killed, by group."""
        return solver_ranks(folder, **layout)

    def _victims(self, running: dict[int, float]) -> list[tuple[int, psutil.Process]]:
        """Return ranks of these groups, without those of a new start that has reported nothing yet."""
        ranks, victims = self.ranks(self._folder, **self._layout), []
        for group, at in sorted(running.items()):
            for process in ranks.get(group, []):
                with contextlib.suppress(OSError):
                    victims += [(group, process)] if started_at(process.pid) < at else []
        return victims

    def _end(self, group: int, process: psutil.Process) -> bool:
        way = self._random.choice(list(self.ways))
        try:
            process.send_signal(way)
        except psutil.Error:  # the process has just ended
            return False
        self.killed.append((group, way))
        self._here.add(group)
        return True

    def _note(self, marks: str) -> None:
        with (self._folder / "kills").open("a") as kills:
            kills.write(marks)

    def stop(self) -> None:
        self._ended.set()
        self.join()


def expected_samples(run: Path, simulations: int) -> dict[str, str]:
    """Compute the fingerprint of every sample of the heat example, by "simulation/step"."""
    return _compute_samples((run / "parameters.csv").read_text(), simulations)


@functools.cache
def _compute_samples(table: str, simulations: int) -> dict[str, str]:
    simulate = runpy.run_path(str(HEAT2D / "heat2d.py"))["simulate"]
    alone = SimpleNamespace(rank=0, size=1)
    expected = {}
    for row in csv.DictReader(io.StringIO(table)):
        simulation = int(row["simulation"])
        if simulation < simulations:
            values = {name: float(value) for name, value in row.items() if name != "simulation"}
            for step, (_, field) in enumerate(simulate(alone, values)):
                bits = np.ascontiguousarray(field, dtype=np.float32).tobytes()
                expected[f"{simulation}/{step}"] = hashlib.sha256(bits).hexdigest()
    return expected


def counted_samples(folder: Path, trainers: int) -> dict[str, list[str]]:
    """Return what trainers/census/census.py has noted on all trainers."""
    counted: dict[str, list[str]] = {}
    for trainer in range(trainers):
        for key, prints in json.loads((folder / f"census-{trainer}.json").read_text()).items():
            counted.setdefault(key, []).extend(prints)
    return counted


def wait_for_event(folder: Path, name: str, timeout_s: float = 60) -> dict:
    def found() -> dict | None:
        return next((event for event in events_of(folder) if event["event"] == name), None)

    return wait_until(found, timeout_s, every_s=0.02, told=lambda: f"no event {name!r} within {timeout_s} s")


def check_exactly_once(folder: JobFolder, run: Path, count: int) -> None:
    counted = counted_samples(folder.path, trainers=2)
    expected = expected_samples(run, count)
    assert len(expected) == count * STEPS
    assert counted.keys() == expected.keys(), f"missing: {sorted(expected.keys() - counted.keys())[:10]}"
    for key, prints in counted.items():
        # `tail: repeat` gives one trainer a sample again if the other has one more.
        assert set(prints) == {expected[key]}, f"sample {key} is not the one that was sent"
    repeated = {key: len(prints) for key, prints in counted.items() if len(prints) > 1}
    assert sum(repeated.values()) - len(repeated) <= 1, f"given twice: {repeated}"


def wait_for_no_rank(folder: JobFolder, timeout_s: float) -> None:
    """Wait until all ranks of the jobs of a folder have ended."""
    wait_until(
        lambda: not ranks_of(folder.path),
        timeout_s,
        every_s=0.05,
        told=lambda: [process.cmdline() for process in ranks_of(folder.path)],
    )
