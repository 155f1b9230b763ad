"""One draw of the campaign of the loop: trainers cancel and publish, solvers read, processes die; all from one seed.

Programs in Python (functions and loops), C, carried ones and those that only write files, in groups of one to three
ranks. No cancelled simulation runs again, those that are cancelled were taken by `cancel`, of all others each sample is
drawn once, all ranks of a group end at the same step and read the same versions, which never fall, and nothing is left.
"""

import contextlib
import dataclasses
import json
import random
import re
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from carried_campaign import COMPILERS
from jobs import PROGRAMS, JobFolder, Result, config, environment, mpicc, python, ranks_of, read_rows
from killing import events_of, job_processes, started_at
from stream_job import trained

KINDS = ("function", "program", "c", "carried", "carried python", "carried ranks", "files")
ELEMENTS = 100
_WAYS = (signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP)


@dataclasses.dataclass(frozen=True)
class Draw:
    """What one seed has chosen."""

    seed: int
    kind: str
    start: str
    lifetime: str
    groups: int
    ranks: int  # of a group; of the program, where it is carried
    carriers: int
    spares: int
    trainers: int
    elastic: bool
    tail: str
    policy: str
    capacity: int
    batch: int
    window: int
    rows: bool  # a field that is put by maps
    validation: int
    simulations: int
    steps: int
    step_s: float
    pause_s: float
    cancels: float
    most: int
    publishes: float
    refreshes: int
    deaths: tuple[tuple[str, int], ...]  # who, and by which signal

    @property
    def carried(self) -> bool:
        """Whether the program is no rank of the job."""
        return self.kind.startswith("carried") or self.kind == "files"

    def __str__(self) -> str:
        """In one line."""
        return " ".join(f"{key}={value}" for key, value in dataclasses.asdict(self).items())


def draw(seed: int) -> Draw:
    """Choose."""
    chosen = random.Random(f"loop campaign {seed}")
    kind = chosen.choice(KINDS)
    carried = kind.startswith("carried") or kind == "files"
    several = kind in ("program", "c", "carried ranks", "function")
    ranks = chosen.randint(1, 3) if several else 1
    start = "split" if carried else chosen.choice(["split", "split", "spawn"])
    lifetime = "simulation" if kind == "files" else chosen.choice(["pool", "pool", "simulation"])
    lifetime = lifetime if carried or start == "spawn" else "pool"
    elastic = seed % 4 == 0
    trainers = chosen.randint(1, 2) + elastic
    deaths = chosen.randint(0, 5)
    roles = ["solver", "solver", "solver", *(["carrier"] if carried else [])]
    who = [chosen.choice(roles) for _ in range(deaths)]
    if elastic:
        who = who[:3] + ["trainer"] * chosen.randint(1, trainers - 1)
        chosen.shuffle(who)
    slow = lifetime == "simulation"
    lasts = elastic and not carried  # groups that are lost are not replaced
    batch = chosen.randint(1, 4)
    window = 1 if elastic else chosen.choice([1, 1, 1, 2, 3])
    return Draw(
        seed=seed,
        kind=kind,
        start=start,
        lifetime=lifetime,
        groups=chosen.randint(1, 3 if ranks == 1 else 2),
        ranks=ranks,
        carriers=chosen.choice([1, 2]) if kind == "carried ranks" and ranks > 1 else 1,
        spares=0 if start == "spawn" else max(chosen.randint(0, 1), who.count("solver" if lasts else "carrier")),
        trainers=trainers,
        elastic=elastic,
        tail=chosen.choice(["repeat", "drop"]) if elastic else "repeat",
        policy=chosen.choice(["fifo", "firo", "reservoir"]),
        capacity=window * (chosen.choice([4, 10, 100]) + 2 * batch),
        batch=batch,
        window=window,
        rows=kind in ("program", "carried python") and not elastic and chosen.random() < 0.6,
        validation=chosen.choice([0, 0, 2]),
        simulations=14 if slow else chosen.randint(20, 40),
        steps=chosen.randint(8, 30),
        step_s=chosen.choice([0.002, 0.01, 0.03]),
        pause_s=chosen.choice([0.0, 0.005, 0.02]),
        cancels=chosen.choice([0.02, 0.1, 0.5]),
        most=chosen.randint(2, 10),
        publishes=chosen.choice([0.05, 0.5, 1.0]),
        refreshes=chosen.choice([5, 50, 100]),
        deaths=tuple((one, signal.SIGKILL if one == "trainer" else chosen.choice(_WAYS)) for one in who),
    )


def build(folder: Path) -> None:
    """Build the solvers, as a user does."""
    warnings = ["-O2", "-g", "-Wall", "-Wextra", "-Werror"]
    source = PROGRAMS / "solvers/loop.c"
    mpich = shutil.which(COMPILERS["mpich"])
    for command in (
        [mpicc(), *warnings, source, "-o", folder / "loop-c", *config("--cflags", "--libs")],
        ["cc", *warnings, "-DCARRIED", source, "-o", folder / "loop-carried", *config("--carried")],
        *([[mpich, *warnings, "-DCARRIED", "-DWITH_MPI", source, "-o", folder / "loop-ranks", *config("--carried")]]
          if mpich else []),
    ):  # fmt: skip
        done = subprocess.run(command, env=environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def solvers_of(folder: Path, built: Path, one: Draw) -> dict[str, Any]:
    """What runs the simulations."""
    words = [str(one.steps), str(int(one.step_s * 1e6)), str(one.seed), str(one.refreshes), str(ELEMENTS)]
    if one.kind == "function":
        return {"function": "loop.function:by_rows"}
    if one.kind == "program":
        return {"program": python("loop/program.py")}
    if one.kind == "c":
        return {"program": [str(built / "loop-c"), *words]}
    if one.kind == "carried python":
        return {"program": python("loop/program.py"), "carried": {"ranks": 1}}
    if one.kind == "carried":
        return {"program": [str(built / "loop-carried"), *words], "carried": {"ranks": 1, "launcher": "none"}}
    if one.kind == "carried ranks":
        launcher = ["mpirun.mpich", "-n", "{ranks}", "-hosts", "{hosts}"]
        return {
            "program": [str(built / "loop-ranks"), *words],
            "carried": {"ranks": one.ranks, "launcher": launcher},
        }
    (folder / "case").mkdir()
    writes = python("loop/writes.py", "{alpha:.17g}", "{simulation}", one.steps, one.step_s)
    return {
        "program": writes, "carried": {}, "case": {"folder": "case"}, "output": {"files": "u_*.npy"},
    }  # fmt: skip


def write_job(folder: JobFolder, built: Path, one: Draw) -> None:
    """Write its job file."""
    options = {key: getattr(one, key) for key in ("seed", "simulations", "validation", "cancels", "most", "publishes")}
    options |= {"elements": ELEMENTS, "batch": one.batch, "pause_s": one.pause_s}
    options |= {"steps": one.steps, "step_s": one.step_s, "refreshes": one.refreshes, "rows": one.rows}
    (folder.path / "options.json").write_text(json.dumps(options))
    folder.variables["LOOP_OPTIONS"] = str(folder.path / "options.json")
    program = python("loop/trainer.py", json.dumps(options))
    if one.elastic:
        step = {"batch_size": one.batch, "global_batch_size": None, "every": 1, "pause_s": one.pause_s}
        others = {"validate": 0, "after": 0, "kills": {}, "kills_again": {}, "joins": 0, "retires": 0, "waits_s": 0}
        program = python("trainers/elastic/stream.py", json.dumps({**step, **others, "loop": options}))
    job: dict[str, Any] = {
        "name": "job",
        "seed": one.seed,
        "trainers": {"ranks": one.trainers, "program": program, **({"elastic": True} if one.elastic else {})},
        "solvers": {
            "groups": one.groups,
            "ranks_per_group": one.carriers if one.carried else one.ranks,
            "start": one.start,
            "lifetime": one.lifetime,
            "retries": 20,
            "timeout_s": 4,
            "start_timeout_s": 10,
            **({"spares": one.spares} if one.start == "split" else {}),
            **solvers_of(folder.path, built, one),
        },
        "parameters": {"count": one.simulations, "space": {"alpha": [0.0, 1.0]}},
        "fields": {"u": {"dtype": "float32", "shape": [12, 6]}},
        "buffer": {"policy": one.policy, "capacity": one.capacity, "tail": one.tail},
    }
    if one.rows:
        job["fields"]["rows"] = {"dtype": "float32", "shape": [8]}
    if one.validation:
        job["validation"] = {"count": one.validation}
    if one.window > 1:
        job["samples"] = {"window": one.window}
    folder.write_job(job)


# -- deaths ----------------------------------------------------------------------------------------------------------


def groups_at_work(folder: Path, one: Draw) -> dict[int, list[psutil.Process]]:
    """The ranks of the groups that have been given a simulation, as children of mpidata-rank."""
    events = events_of(folder)
    began = {event["group"]: float(event["time"]) for event in events if event["event"] == "dispatch"}
    lost = {event["group"] for event in events if event["event"] == "group_lost"}
    found: dict[int, list[psutil.Process]] = {}
    for process in ranks_of(folder):
        with contextlib.suppress(psutil.Error, OSError, AttributeError):
            if process.name() == "mpidata-rank" or process.parent().name() != "mpidata-rank":
                continue
            words = process.parent().cmdline()
            width = one.carriers if one.carried else one.ranks
            rank = int(process.environ().get("OMPI_COMM_WORLD_RANK", -1))
            group = int(words[words.index("--group") + 1]) if "--group" in words else (rank - 1 - one.trainers) // width
            if ("--group" in words or rank > one.trainers) and group not in lost:
                found.setdefault(group, []).extend([process] if started_at(process.pid) < began.get(group, 0) else [])
    return found


def ranks_and_programs(folder: Path, one: Draw) -> list[tuple[int, psutil.Process]]:
    """Solver ranks; where these are carriers, what runs below them."""
    found = []
    for group, ranks in groups_at_work(folder, one).items():
        for rank in ranks:
            with contextlib.suppress(psutil.Error):
                below = rank.children(recursive=True)
                old = [child for child in below if time.time() - child.create_time() > 0.3]
                found += [(group, process) for process in (old if one.carried else [rank])]
    return found


def carriers(folder: Path, one: Draw) -> list[tuple[int, psutil.Process]]:
    """Ranks that carry a program."""
    return [(group, rank) for group, ranks in groups_at_work(folder, one).items() for rank in ranks]


def trainers(folder: Path, one: Draw) -> list[tuple[int, psutil.Process]]:
    """Trainers, once all have made a step."""
    books = [*folder.glob("runs/job/*/book-*.jsonl")]
    if len(books) < one.trainers or not all('"made"' in book.read_text() for book in books):
        return []
    return [(-1, process) for process in job_processes(folder, "trainer", one.trainers)]


Find = Callable[[Path, Draw], list[tuple[int, psutil.Process]]]
VICTIMS: dict[str, Find] = {"solver": ranks_and_programs, "carrier": carriers, "trainer": trainers}


class Deaths(threading.Thread):
    """Ends what the draw says, one after the other."""

    def __init__(self, folder: Path, one: Draw) -> None:
        super().__init__(daemon=True)
        self.done: list[tuple[str, int, int]] = []  # who, of which group, by which signal
        self._folder, self._one, self._over = folder, one, threading.Event()
        self._random = random.Random(one.seed)

    def run(self) -> None:
        for role, way in self._one.deaths:
            while not self._over.wait(self._random.uniform(0.05, 0.6)) and not self._end(role, way):
                pass

    def _end(self, role: str, way: int) -> bool:
        hit = {group for _, group, _ in self.done if group >= 0} if not self._one.carried else set()
        found = [(group, process) for group, process in VICTIMS[role](self._folder, self._one) if group not in hit]
        if not found:
            return False
        group, process = self._random.choice(found)
        try:
            process.send_signal(way)
        except psutil.Error:
            return False
        self.done.append((role, group, way))
        return True

    def stop(self) -> None:
        self._over.set()
        self.join()


def run_draw(folder: JobFolder, built: Path, seed: int, timeout: float = 170) -> str:
    """Run the draw of a seed in a folder, and check what came; returns a line that says what happened."""
    one = draw(seed)
    write_job(folder, built, one)
    deaths = Deaths(folder.path, one)
    deaths.start()
    try:
        result = folder.run(timeout=timeout)
    finally:
        deaths.stop()
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    taken = check_cancelled(one, folder.path, result)
    (check_trained if one.elastic else check_drawn)(one, folder.path, result)
    check_groups(one, folder.path, result)
    died = ", ".join(f"{role}/{int(way)}" for role, _, way in deaths.done)
    cancelled, lost = result.summary.get("cancelled", []), result.summary["lost_groups"]
    return f"{result.seconds:.0f} s, {len(cancelled)} of {len(taken)} cancelled, lost {lost}, ended {died or 'none'}"


# -- checks ----------------------------------------------------------------------------------------------------------


def check_cancelled(one: Draw, folder: Path, result: Result) -> set[int]:
    """What was cancelled had been taken, never ran again, and is told the same everywhere; returns what was taken."""
    acts = [json.loads(line) for path in folder.glob("acts-*.jsonl") for line in path.read_text().splitlines()]
    taken = {simulation for act in acts for simulation in act.get("taken", [])}
    asked = {simulation for act in acts for simulation in act.get("asks", [])}
    assert taken <= asked & set(range(one.simulations)), (taken, asked)
    assert all(len(set(act["taken"])) == len(act["taken"]) for act in acts if "taken" in act), acts
    assert not any(act.get("again") for act in acts), acts
    summary, cancelled = result.summary, set(result.summary.get("cancelled", []))
    assert cancelled <= (asked if one.elastic else taken), (cancelled - taken, result.logs())
    counts = summary["simulations"]
    total = one.simulations + one.validation
    assert counts["complete"] == total - len(cancelled) and counts["failed"] == 0, counts
    assert counts.get("cancelled", 0) == len(cancelled) and not summary["set_aside"], counts
    rows = read_rows(result.run / "parameters.csv")
    assert {simulation for simulation, row in rows.items() if row.get("state") == "cancelled"} == cancelled
    out: Counter[int] = Counter()
    for event in result.events():
        if event["event"] == "simulation_cancelled":
            out[event["simulation"]] += 1
        elif event["event"] in ("dispatch", "simulation_complete"):
            assert not out[event["simulation"]], f"{event} after it was cancelled"
    assert out == Counter(cancelled), (out, cancelled)
    return taken


def check_drawn(one: Draw, folder: Path, result: Result) -> None:
    """Each sample was drawn once, and all of what is complete; a reservoir draws some again."""
    parts = [json.loads((folder / f"drawn-{trainer}.json").read_text()) for trainer in range(one.trainers)]
    cancelled = set(result.summary.get("cancelled", []))
    drawn = Counter(key for part in parts for key in set(part))
    assert max(drawn.values(), default=1) == 1, [key for key, n in drawn.items() if n > 1]
    windows = {s: one.steps + s % 3 - (one.window - 1) for s in range(one.simulations)}
    everything = {f"{simulation}/{step}" for simulation, n in windows.items() for step in range(n)}
    assert drawn.keys() <= everything, drawn.keys() - everything
    lacking = {key for key in everything - drawn.keys() if int(key.split("/")[0]) not in cancelled}
    assert not lacking, (sorted(lacking), result.logs())
    assert result.summary["samples"]["received"] == len(drawn), (result.summary["samples"], len(drawn))
    if one.policy != "reservoir":
        for part in parts:  # what `tail: repeat` gives again comes at the end
            assert len(set(part[: len(set(part))])) == len(set(part)), Counter(part).most_common(5)


def check_trained(one: Draw, folder: Path, result: Result) -> None:
    """All of what is complete was trained on, whoever has died; `tail: drop` leaves some, but takes none again."""
    counts = trained({"trainers": one.trainers, "spares": 0, "every": 1, "weighed": False}, result)
    cancelled = set(result.summary.get("cancelled", []))
    complete = {1 + step + 1000 * s for s in range(one.simulations) for step in range(one.steps + s % 3)
                if s not in cancelled}  # fmt: skip
    lacking = sorted(complete - set(counts))
    again = [sample for sample, n in counts.items() if n > 1]
    assert one.tail == "drop" or not lacking, (lacking, result.logs())
    assert one.tail == "repeat" or one.policy == "reservoir" or not again, (again, result.logs())
    assert len(result.summary.get("lost_trainers", [])) <= sum(role == "trainer" for role, _ in one.deaths)


def check_groups(one: Draw, folder: Path, result: Result) -> None:
    """All ranks of a group see the same, and versions never fall."""
    lives: dict[str, dict[int, list[list[str]]]] = {}
    for path in folder.glob("ran-*"):
        _, life, rank = path.name.split("-")
        lives.setdefault(life, {})[int(rank)] = [line.split() for line in path.read_text().split("\n")[:-1]]
    steps = {e["simulation"]: e["steps"] for e in result.events() if e["event"] == "simulation_cancelled"}
    for life, ranks in lives.items():
        length = min(map(len, ranks.values()))
        assert len({json.dumps(lines[:length]) for lines in ranks.values()}) == 1, (life, ranks)
        versions = [int(line[2]) for lines in ranks.values() for line in lines if line[0] == "version"]
        assert len(ranks) > 1 or versions == sorted(versions), (life, versions)
        for line in ranks[0][:length]:
            if line[0] == "end" and line[3] == "cancelled":
                simulation, made = int(line[1]), int(line[2])
                told = steps.get(simulation, -1)  # what a carrier has not taken yet is dropped
                assert 0 <= told <= made if one.carried else told == made, (simulation, made, told)
            elif line[0] == "end":
                assert int(line[2]) == one.steps + int(line[1]) % 3, line
    assert not re.search("Traceback", result.output), result.output
