"""End processes of a job of the loop campaign, as its seed has chosen, and note each in the file `kills`."""

import contextlib
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from jobs import ranks_of, variables_of
from killing import events_of, job_processes, started_at
from loop_draw import Draw

_PATIENCE_S = 8  # after that, another process dies in place of one that no longer exists


def groups_at_work(folder: Path, one: Draw) -> dict[int, list[psutil.Process]]:
    """Return the ranks of the groups that were given a simulation: children of mpidata-rank."""
    events = events_of(folder)
    began = {event["group"]: float(event["time"]) for event in events if event["event"] == "dispatch"}
    lost = {event["group"] for event in events if event["event"] == "group_lost"}
    last = one.first_solver + (one.groups + one.spares) * one.width * (one.start == "split")
    found: dict[int, list[psutil.Process]] = {}
    for process, words, rank in _programs(folder):
        if "--group" in words:
            group = int(words[words.index("--group") + 1])
        elif one.first_solver <= rank < last and not {"--inference", "--learner"} & set(words):
            group = (rank - one.first_solver) // one.width
        else:
            continue
        with contextlib.suppress(OSError):
            if group not in lost and started_at(process.pid) < began.get(group, 0):
                found.setdefault(group, []).append(process)
    return found


def _programs(folder: Path) -> list[tuple[psutil.Process, list[str], int]]:
    """Return the program of each rank, the words of its mpidata-rank, and its number in its world."""
    found = []
    for process in ranks_of(folder):
        with contextlib.suppress(psutil.Error, AttributeError):
            if process.name() != "mpidata-rank" and process.parent().name() == "mpidata-rank":
                rank = int(variables_of(process).get("OMPI_COMM_WORLD_RANK", -1))
                found.append((process, process.parent().cmdline(), rank))
    return found


def ranks_and_programs(folder: Path, one: Draw) -> list[tuple[str, psutil.Process]]:
    """Return the solver ranks; for carriers, the processes below them."""
    found = []
    for group, ranks in groups_at_work(folder, one).items():
        for rank in ranks:
            with contextlib.suppress(psutil.Error):
                below = rank.children(recursive=True)
                old = [child for child in below if time.time() - child.create_time() > 0.3]
                found += [(f"group {group}", process) for process in (old if one.carried else [rank])]
    return found


def carriers(folder: Path, one: Draw) -> list[tuple[str, psutil.Process]]:
    """Return the carriers."""
    return [(f"group {group}", rank) for group, ranks in groups_at_work(folder, one).items() for rank in ranks]


def trainers(folder: Path, one: Draw) -> list[tuple[str, psutil.Process]]:
    """Return the trainers, once all have made a step; at least one survives."""
    books = [*folder.glob("runs/job/*/book-*.jsonl")]
    if len([book for book in books if '"made"' in book.read_text()]) < one.trainers:
        return []
    return [(f"trainer {process.pid}", process) for process in job_processes(folder, "trainer", one.trainers)]


def _of_kind(kind: str, folder: Path, first: int, count: int) -> list[tuple[str, psutil.Process]]:
    """Return joined ranks of a kind, including spares; `first` is the first of those that started with the others."""
    events = events_of(folder)
    joined = {event[kind] for event in events if event["event"] == f"{kind}_joined"}
    gone = {event[kind] for event in events if event["event"] in (f"{kind}_lost", f"{kind}_left")}
    found = []
    for process, words, rank in _programs(folder):
        spawned = f"--{kind}" in words
        if not spawned and ("--group" in words or "--inference" in words or "--learner" in words):
            continue
        number = int(words[words.index(f"--{kind}") + 1]) if spawned else rank - first
        if number in joined - gone and (spawned or 0 <= number < count):
            found.append((f"{kind} {number}", process))
    return found


def _behind_solvers(one: Draw) -> int:
    return one.first_solver + (one.groups + one.spares) * one.width * (one.start == "split")


def inference_ranks(folder: Path, one: Draw) -> list[tuple[str, psutil.Process]]:
    """Return the inference ranks and their spares."""
    return _of_kind("inference", folder, _behind_solvers(one), one.inference + one.inference_spares)


def learners(folder: Path, one: Draw) -> list[tuple[str, psutil.Process]]:
    """Return the learner and its spare."""
    first = _behind_solvers(one) + (one.inference + one.inference_spares) * bool(one.inference)
    return _of_kind("learner", folder, first, 1 + one.learner_spares)


Find = Callable[[Path, Draw], list[tuple[str, psutil.Process]]]
VICTIMS: dict[str, Find] = {
    "solver": ranks_and_programs,
    "carrier": carriers,
    "trainer": trainers,
    "inference": inference_ranks,
    "learner": learners,
}


class Deaths(threading.Thread):
    """Ends the chosen processes one after another."""

    def __init__(self, folder: Path, one: Draw) -> None:
        super().__init__(daemon=True)
        self.done: list[tuple[str, str, int]] = []  # the role, which one, by which signal
        self._folder, self._one, self._over = folder, one, threading.Event()
        self._random = random.Random(one.seed)

    def run(self) -> None:
        for role, way in self._one.deaths:
            deadline = time.monotonic() + _PATIENCE_S
            while not self._over.wait(self._random.uniform(0.05, 0.6)) and not self._end(role, way):
                begun = any(event["event"] == "dispatch" for event in events_of(self._folder))
                if not begun:
                    deadline = time.monotonic() + _PATIENCE_S
                elif role != "trainer" and time.monotonic() > deadline:  # the job no longer needs this role
                    role = next(
                        (other for other in self._others(role) if VICTIMS[other](self._folder, self._one)), role
                    )

    def _others(self, role: str) -> list[str]:
        """Return the roles that may die in place of one that does not exist."""
        return [kind for kind in ("solver", *["inference"] * bool(self._one.inference)) if kind != role]

    def _end(self, role: str, way: int) -> bool:
        hit = {who for kind, who, _ in self.done if not (self._one.carried and kind in ("solver", "carrier"))}
        found = [(who, process) for who, process in VICTIMS[role](self._folder, self._one) if who not in hit]
        if not found:
            return False
        who, process = self._random.choice(found)
        try:
            process.send_signal(way)
        except psutil.Error:
            return False
        self.done.append((role, who, way))
        with (self._folder / "kills").open("a") as kills:
            kills.write("x")
        return True

    def stop(self) -> None:
        self._over.set()
        self.join()
