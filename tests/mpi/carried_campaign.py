"""One random job of the campaign on carried programs: the job and its deaths follow from one seed.

The program has one to three ranks and no MPI or one of three; the job uses the MPI of this environment. Five times, one
of these ends: the program (by a signal, by itself, by its MPI), its launcher, its carrier, the carrier's mpidata-rank.
Whatever ends, each sample is received and drawn once, bit for bit, and no process or folder is left.
"""

import contextlib
import dataclasses
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import psutil
from jobs import PROGRAMS, JobFolder, config, environment, mpicc, python, ranks_of
from killing import events_of

ENDS = 5
WORK_US = 30000  # a step, so that the job takes longer than its ends
RESTARTS = 12
COMPILERS = {"none": "cc", "job": "", "mpich": "mpicc.mpich", "openmpi": "mpicc.openmpi"}
_AT_ONCE = (signal.SIGKILL, signal.SIGSTOP)
# exit(3), MPI_Abort and exit(0) in the middle: preloads/kill_switch.c
_WAYS = {
    "program": (*_AT_ONCE, signal.SIGSEGV, *(signal.SIGRTMIN + number for number in (1, 2, 3))),
    "launcher": _AT_ONCE,
    "carrier": _AT_ONCE,
    "mpidata-rank": _AT_ONCE,
}


@dataclasses.dataclass(frozen=True)
class Draw:
    """The choices of one seed."""

    seed: int
    mpi: str  # MPI of the program: a key of COMPILERS
    ranks: int  # of the program
    carriers: int  # of each group
    elements: int  # float32 values per sample
    trainers: int
    groups: int
    lifetime: str
    simulations: int
    steps: int
    together: str
    batch: int
    ends: tuple[tuple[str, int], ...]  # what ends, and by which signal

    def __str__(self) -> str:
        """Return the choices in one line."""
        return " ".join(f"{key}={value}" for key, value in dataclasses.asdict(self).items())

    def share(self, trainer: int) -> set[str]:
        """Samples of a trainer."""
        every = ((simulation, step) for simulation in range(self.simulations) for step in range(self.steps))
        return {f"{s}/{step}" for s, step in every if (s + step) % self.trainers == trainer}


def draw(seed: int) -> Draw:
    """Generate the job of a seed. At most two carriers are lost, because two groups wait as spares."""
    chosen = random.Random(f"carried campaign {seed}")
    mpi = chosen.choice(["none", "job", "mpich", "openmpi", "mpich", "openmpi"])
    ranks = 1 if mpi == "none" else chosen.randint(1, 3)
    lifetime = chosen.choice(["pool", "pool", "simulation"])
    kinds = ["program", "program", "program", *(["launcher"] if mpi != "none" else [])]
    ends = [chosen.choice(kinds) for _ in range(3)]
    ends += [chosen.choice([*kinds, "carrier", "mpidata-rank"]) for _ in range(2)]
    return Draw(
        seed=seed,
        mpi=mpi,
        ranks=ranks,
        carriers=1 if ranks == 1 else random.Random(f"carriers {seed}").choice([1, 2]),
        elements=int(10 ** chosen.uniform(2, 6.3) / 4),
        trainers=chosen.randint(1, 2),
        groups=chosen.randint(1, 3),
        lifetime=lifetime,
        simulations=14 if lifetime == "simulation" else 40,
        steps=chosen.randint(25, 50),
        together=chosen.choice(["together", "apart"]),
        batch=chosen.choice([0, 1, 3]),
        ends=tuple((kind, int(chosen.choice(_WAYS[kind]))) for kind in chosen.sample(ends, ENDS)),
    )


def build(folder: Path) -> None:
    """Build the program for each MPI, and the library that is preloaded into it."""
    warnings = ["-O2", "-g", "-Wall", "-Wextra", "-Werror"]
    for mpi, name in COMPILERS.items():
        compiler = name or mpicc()
        assert shutil.which(compiler), f"{compiler} is not installed"
        flags = [] if mpi == "none" else ["-DWITH_MPI"]
        switch = ["-DWITHOUT_MPI"] if mpi == "none" else []
        for command in (
            [compiler, *warnings, "-DCARRIED", *flags, PROGRAMS / "solvers/sized.c", "-o", folder / f"sized-{mpi}"]
            + config("--carried"),
            [compiler, *warnings, *switch, "-shared", "-fPIC", PROGRAMS / "preloads/kill_switch.c"]
            + ["-o", folder / f"switch-{mpi}.so", "-ldl"],
        ):
            done = subprocess.run(command, env=environment(), capture_output=True, text=True)
            assert done.returncode == 0, done.stderr


def write_job(folder: JobFolder, built: Path, one: Draw) -> None:
    """Write the job file."""
    program = [str(built / f"sized-{one.mpi}"), str(one.elements), str(one.steps), "put", one.together, str(WORK_US)]
    preload = f'LD_PRELOAD="{built}/switch-{one.mpi}.so" exec "$@"'
    census = python("trainers/census/census_sized.py", "0", "0", str(one.batch))
    (folder.path / "carried.sh").write_text(f"#!/bin/sh\n{preload}\n")
    (folder.path / "carried.sh").chmod(0o755)
    job = {
        "name": "job",
        "seed": one.seed,
        "trainers": {"ranks": one.trainers, "program": census},
        "solvers": {
            "groups": one.groups,
            "spares": 2,
            "ranks_per_group": one.carriers,
            "carried": {"ranks": one.ranks, **_launcher(one)},
            "program": ["./carried.sh", *program],
            "lifetime": one.lifetime,
            "retries": 20,
            "timeout_s": 3,
            "start_timeout_s": 10,
            "in_flight": 2,
        },
        "parameters": {"count": one.simulations, "space": {"alpha": [0.0, 1.0]}},
        "fields": {"u": {"dtype": "float32", "shape": [one.elements]}, "mark": {"dtype": "int64", "shape": []}},
        "buffer": {"policy": "fifo", "capacity": 10, "tail": "repeat"},
        "checkpoint": {"every_s": 1},
    }
    folder.write_job(job)


def _launcher(one: Draw) -> dict[str, object]:
    """Return the launcher, which cannot be detected through the script that preloads."""
    if one.mpi == "none":
        return {"launcher": "none"}
    compiler = Path(COMPILERS[one.mpi] or mpicc())
    mpirun = str(compiler.with_name(compiler.name.replace("mpicc", "mpirun")))
    told = subprocess.run([mpirun, "--version"], env=environment(), capture_output=True, text=True, check=True)
    if "HYDRA" in told.stdout:
        return {"launcher": [mpirun, "-n", "{ranks}", "-hosts", "{hosts}"]}
    root = ["--allow-run-as-root"] if os.getuid() == 0 else []
    return {"launcher": [mpirun, "--oversubscribe", *root, "-n", "{ranks}", "--host", "{hosts}"]}


class Ender(threading.Thread):
    """Ends the chosen victims one after another, each in a group whose program runs."""

    def __init__(self, folder: Path, one: Draw) -> None:
        super().__init__(daemon=True)
        self.done: list[tuple[str, int]] = []
        self._folder, self._one = folder, one
        self._random = random.Random(one.seed)
        self._over = threading.Event()
        (folder / "kills").touch()  # census_sized.py checks this file

    def run(self) -> None:
        for what, how in self._one.ends:
            while not self._over.wait(self._random.uniform(0.2, 0.8)) and not self._end(what, how):
                pass

    def _end(self, what: str, how: int) -> bool:
        with contextlib.suppress(psutil.Error, OSError):
            if victims := self._victims(what):
                self._random.choice(victims).send_signal(how)
                self.done.append((what, how))
                return True
        return False

    def _victims(self, what: str) -> list[psutil.Process]:
        """Return the processes of this kind whose program has run for at least 0.2 s."""
        found = []
        for carrier in ranks_of(self._folder):
            if carrier.name() != "mpidata-carrier":
                continue
            if self._one.carriers > 1 and what in ("carrier", "mpidata-rank"):  # even if it has started nothing
                found.append(carrier if what == "carrier" else carrier.parent())
                continue
            below = carrier.children(recursive=True)
            programs = [one for one in below if one.name() == f"sized-{self._one.mpi}"]
            if len(programs) < self._one.ranks or time.time() - programs[0].create_time() < 0.2:
                continue
            launchers = [one for one in carrier.children() if one not in programs]
            found += {
                "program": programs, "launcher": launchers, "carrier": [carrier], "mpidata-rank": [carrier.parent()],
            }[what]  # fmt: skip
        return [one for one in found if one]

    def stop(self) -> None:
        self._over.set()
        self.join()


def run_draw(folder: JobFolder, built: Path, seed: int, timeout: float = 170) -> str:
    """Run the job of a seed in a folder, and check the result; returns a line that describes the run."""
    one = draw(seed)
    write_job(folder, built, one)
    ender = Ender(folder.path, one)
    ender.start()
    try:
        result = folder.run("--restarts", str(RESTARTS), timeout=timeout)
    finally:
        ender.stop()
    assert result.status == 0, result.logs()
    restarts = sum(event["event"] == "start" for event in events_of(folder.path)) - 1
    summary = result.summary
    assert summary["status"] == "complete" and not summary["set_aside"], result.logs()
    assert summary["simulations"]["complete"] == one.simulations
    assert summary["samples"]["received"] == one.simulations * one.steps
    check_drawn(one, folder.path)
    fatal = [what for what, _ in one.ends if what in ("carrier", "mpidata-rank")]
    assert len(ender.done) > ENDS // 2, ender.done
    if not fatal:
        assert restarts == 0, f"no rank has died, but the job was started again\n{result.logs()}"
    ways = ", ".join(f"{what}/{how}" for what, how in ender.done)
    return f"{result.seconds:.0f} s, {ways}, {restarts} restarts, lost groups {summary['lost_groups']}"


def check_drawn(one: Draw, folder: Path) -> None:
    """Each trainer has drawn all of its own samples, once each except those that fill its last batches."""
    size = max(1, one.batch)
    shares = [one.share(trainer) for trainer in range(one.trainers)]
    most = max(-(-len(share) // size) for share in shares) * size
    for trainer, share in enumerate(shares):
        found = Counter(json.loads((folder / f"census-{trainer}.json").read_text()))
        assert found.keys() == share, (sorted(share - found.keys())[:10], sorted(found.keys() - share)[:10])
        assert found.total() == most, (found.total(), most)
