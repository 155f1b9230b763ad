"""A job of shell scripts for tests of the launch; its programs do not use MPI."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from waiting import wait_until

from mpidata.launch.watching.processes import processes_of
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Field, Plan, Program
from mpidata.run.rank_files import PlannedRun

ROOT = Path(__file__).parents[2]
_ROOMS = [ROOT / "launch" / "rank", ROOT / "launch" / "parents"]
SOURCES = [path for room in _ROOMS for path in sorted(room.glob("*.c"))]
SOURCES += [ROOT / "c_api/src/program/text.c"]
SOURCES += [ROOT / "c_api/src/plan_text" / name for name in ("plan_reading.c", "plan_fields.c")]
SOURCES += [ROOT / "c_api/src/containers" / name for name in ("array.c", "text_list.c")]
_LAUNCHERS = ("OMPI_", "PMIX_", "PMI_", "PRTE_", "SLURM_", "MPIDATA_")


def pulse(flags: int) -> str:
    """Return a shell command that reports libmpidata's state to the shim, in the page that both share."""
    return f"""printf '1PPM\\{flags:o}\\0\\0\\0' 1<>"/proc/self/fd/${{MPIDATA_PULSE%%:*}}\""""


JOIN = pulse(1)
JOIN_AND_LEAVE = pulse(7)  # and call MPI_Finalize

# For a program: wait until all have joined.
JOINED = "while ! test -s $MPIDATA_RUN/events.jsonl; do sleep 0.1; done;"

# A scheduler that reports some progress and then the end. The environment defines what it does meanwhile.
SCHEDULER = """
import json, os, pathlib, time
os.pwrite(int(os.environ["MPIDATA_PULSE"].partition(":")[0]), b"\\3", 4)
run = pathlib.Path(os.environ["MPIDATA_RUN"])
def write(name, value):
    (run / (name + ".new")).write_text(json.dumps(value))
    (run / (name + ".new")).rename(run / name)
write("progress.json", {
    "simulations": {"requested": 3, "running": 1, "complete": 2, "failed": 0},
    "samples": {"received": 20, "per_second": 5.0, "validation": 0, "per_trainer": [12, 8]},
    "batches": [4, 5], "fill": [0.5, 0.25], "capacity": 8, "bytes": 1500000, "report": {"loss": 0.5},
    "training": {"loss": {"first": 1.0, "last": 0.5}}, "seconds": 1.0})
def wait_until(condition):
    while not condition():
        time.sleep(0.02)
def is_there(variable):
    return os.path.exists(os.environ.get(variable, "/").format(run=run))
wait_until(lambda: is_there("TEST_JOIN"))
with open(run / "events.jsonl", "a") as events:
    events.write('{"event": "start"}\\n')
if "TEST_KILL" in os.environ:
    wait_until(lambda: all(log.stat().st_size for log in run.glob("logs/rank-*-trainer-*")))
    os.kill(os.getpid(), 9)
def is_asked_to_stop():
    return (run / "stop").exists() and "TEST_DEAF" not in os.environ
wait_until(lambda: is_asked_to_stop() or is_there("TEST_UNTIL"))
stop = (run / "stop").read_text().strip() if is_asked_to_stop() else None
status = "stopped" if stop else os.environ.get("TEST_STATUS", "complete")
write("summary.json", {
    "name": "job", "run": str(run), "status": status, "error": None, "reason": stop,
    "simulations": {"requested": 3, "complete": 3, "failed": 0},
    "samples": {"received": 30, "validation": 0, "per_trainer": [15, 15]},
    "batches": {"per_trainer": [7, 7]}, "bytes": 2000000, "seconds": 1.5,
    "training": {"loss": {"first": 1.0, "last": 0.25}}})
"""

# `mpidata` with the scheduler above in place of the real one.
_MPIDATA = """
import dataclasses, os, sys
from mpidata.launch.watching.processes import processes_of
from mpidata.run import deadlines
from mpidata.run.plan import Plan, Program
deadlines.GRACE_S = float(os.environ.get("TEST_GRACE_S", deadlines.GRACE_S))
deadlines.FAILED_S = float(os.environ.get("TEST_GRACE_S", deadlines.FAILED_S))
deadlines.LATE_S = float(os.environ.get("TEST_LATE_S", deadlines.LATE_S))
true_plan = Plan.of.__func__
def plan(cls, *given):
    made = true_plan(cls, *given)
    scheduler = Program((sys.executable, "-S", {scheduler!r}))
    return dataclasses.replace(made, programs={{**made.programs, "scheduler": scheduler}})
Plan.of = classmethod(plan)
from mpidata.cli import main
main(prog_name="mpidata")
"""


def clean_environment(**more: str) -> dict[str, str]:
    """Return the environment without variables of a launcher that runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_LAUNCHERS)}
    return {**kept, **more}


def build_shim(folder: Path, cc: str, mpi: str = "") -> Path:
    """Compile mpidata-rank and what it preloads, without MPI, as CMake would for the named MPI."""
    shim = folder / "mpidata-rank"
    common = ["-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{ROOT}/c_api/src", f"-I{ROOT}/launch/parents"]
    flags = ["-std=c11", "-Wpedantic", "-DMPIDATA_PATIENCE=100000000", f'-DMPIDATA_BUILT_WITH="{mpi}"']
    _compile(cc, *common, *flags, *map(str, SOURCES), "-o", str(shim))
    preloaded = [*(ROOT / "launch" / "preload").glob("*.c"), ROOT / "c_api" / "src" / "base" / "beat.c"]
    flags = ["-std=gnu11", "-fvisibility=hidden", "-shared", "-fPIC", "-ldl"]
    _compile(cc, *common, *map(str, preloaded), *flags, "-o", str(folder / "libmpidata_abort.so"))
    return shim


def _compile(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def make_plan(
    folder: Path, programs: Mapping[str, Sequence[str]], environment: Mapping[str, str] | None = None, **more: Any
) -> Plan:
    """A run folder in `folder` with a plan of 2 trainers and 2 groups of 2 ranks, 7 ranks in all."""
    run = folder / "run"
    for name in ("logs", "exits", "private"):
        (run / name).mkdir(parents=True, exist_ok=True)
    orderly = ["sh", "-c", JOIN_AND_LEAVE]
    whole = {"scheduler": orderly, "trainer": orderly, "solver": orderly, "loader": orderly, **programs}
    values: dict[str, Any] = dict(
        run=run,
        folder=folder,
        seed=0,
        world=7,
        trainers=2,
        groups=2,
        ranks_per_group=2,
        in_flight=4,
        simulations=3,
        validation=0,
        policy="fifo",
        capacity=8,
        watermark=0,
        tail="drop",
        parameters=("alpha",),
        fields=(Field("u", "float64", (2,)),),
        programs={role: Program(tuple(arguments), environment or {}) for role, arguments in whole.items()},
    )
    plan = Plan(**{**values, **more})
    PlannedRun(RunFolder(run), plan).write_plan()
    return plan


def write_job(folder: Path, trainer: str = "true", solver: str = "true") -> Path:
    """A job file whose trainers and solvers are shell scripts."""
    (folder / "trainer.sh").write_text(f"{JOIN_AND_LEAVE}\n{trainer}\n")
    (folder / "solver.sh").write_text(f"{JOIN_AND_LEAVE}\n{solver}\n")
    (folder / "scheduler.py").write_text(SCHEDULER)
    (folder / "mpidata.py").write_text(_MPIDATA.format(scheduler=str(folder / "scheduler.py")))
    path = folder / "job.yaml"
    path.write_text(
        textwrap.dedent("""\
        trainers: {ranks: 2, program: [sh, trainer.sh]}
        solvers: {groups: 2, ranks_per_group: 2, program: [sh, solver.sh]}
        parameters: {count: 3, space: {alpha: [0, 1]}}
        fields: {u: {shape: [2]}}
        buffer: {capacity: 64}
        """)
    )
    return path


def mpidata_command(job: Path, *arguments: str) -> list[str]:
    """Return a command of `mpidata` with the test's scheduler, run outside the folder of its stand-in module."""
    code = f"exec(compile(open({str(job.parent / 'mpidata.py')!r}).read(), 'mpidata', 'exec'))"
    return [sys.executable, "-c", code, *arguments]


class Run:
    """Starts `mpidata run` in a folder of its own."""

    def __init__(self, folder: Path, shim: Path) -> None:
        self.folder = folder
        self.run = folder / "runs" / "job" / "1"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.process: subprocess.Popen[str] | None = None
        self._environment = clean_environment(
            MPIDATA_RANK=str(shim), MPIDATA_REPORT="false", TMPDIR=str(self.temporary)
        )

    def start(self, job: Path, *arguments: str, **more: str) -> "subprocess.Popen[str]":
        self.process = subprocess.Popen(
            mpidata_command(job, "run", str(job), *arguments),
            env={**self._environment, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return self.process

    def finish(self) -> tuple[int, str, str]:
        assert self.process is not None
        stdout, stderr = self.process.communicate(timeout=40)
        return self.process.returncode, stdout, stderr

    def wait_for(self, what: Callable[[], object]) -> None:
        assert self.process is not None
        wait_until(what, alive=self.process)

    def wait_for_ranks(self) -> None:
        # Each program prints something when it has started.
        self.wait_for(lambda: sum(path.stat().st_size > 0 for path in self.run.glob("logs/rank-*")) >= 6)

    def wait_for_start(self) -> None:
        """Wait until all ranks have joined: before the first event, signals and deaths have other effects."""
        events = self.run / "events.jsonl"
        self.wait_for(lambda: events.exists() and events.stat().st_size > 0)

    def summary(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.run / "summary.json").read_text())
        return value

    def nothing_left(self) -> bool:
        return not processes_of(self.run) and not os.listdir(self.temporary)

    def again(self, *arguments: str, under: Sequence[str] = ()) -> "subprocess.CompletedProcess[str]":
        """Run another `mpidata run` to its end, for example under strace."""
        command = [*under, *mpidata_command(self.folder / "job.yaml", "run", *arguments)]
        return subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=40)

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        for pid in processes_of(self.run):
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, signal.SIGKILL)
