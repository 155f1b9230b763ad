"""Jobs for the tests: written to a folder, run with a timeout, checked to leave nothing behind."""

import contextlib
import csv
import functools
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml

from mpidata.launch.watching import processes

PROGRAMS = Path(__file__).parent / "programs"
MPIFH = Path(__file__).parents[2] / "fortran_api" / "mpifh"
BIN = Path(sys.prefix) / "bin"


def python(path: str, *arguments: object) -> list[str]:
    """Return the command that runs a Python program of programs/ with arguments."""
    return ["python", str(PROGRAMS / path), *map(str, arguments)]


DRAIN = {"program": python("trainers/drain.py")}  # as `trainers` of a job: they take all samples and ignore them


def sets(*changes: str) -> list[str]:
    """Options `--set KEY=VALUE`, one for each change."""
    return [word for change in changes for word in ("--set", change)]


def read_lines(path: Path) -> list[Any]:
    """Read a file with a JSON value in each line."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_rows(path: Path) -> dict[int, dict[str, str]]:
    """Read a table of simulations, such as parameters.csv or losses.csv, by simulation."""
    with path.open() as file:
        return {int(row["simulation"]): row for row in csv.DictReader(file)}


def read_counts(result: "Result", trainer: int = 0) -> dict[str, int]:
    """Return the counts that trainers/count_draws.py has printed."""
    words = result.log("trainer", trainer).split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


def newest_run(folder: Path) -> Path | None:
    """Run folder of the newest run of the job in a folder."""
    return max((folder / "runs" / "job").glob("[0-9]*"), key=lambda run: int(run.name), default=None)


@dataclass
class Result:
    """How a run of a job ended."""

    status: int
    output: str
    seconds: float
    run: Path | None
    summary: dict[str, Any] = field(default_factory=dict)

    def log(self, role: str, index: int = 0) -> str:
        """Return the log of the index-th rank of the role."""
        assert self.run is not None, self.output
        logs = sorted((self.run / "logs").glob(f"rank-*-{role}*.log"))
        return logs[index].read_text()

    def marked(self, role: str = "trainer", index: int = 0, mark: str = "=> ") -> list[str]:
        """Return those lines of a rank's log that start with the mark, without the mark."""
        return [line.removeprefix(mark) for line in self.log(role, index).splitlines() if line.startswith(mark)]

    def events(self) -> list[dict[str, Any]]:
        """Return all lines of events.jsonl."""
        assert self.run is not None, self.output
        return read_lines(self.run / "events.jsonl")

    def dead_trainers(self) -> list[int]:
        """Return trainers that died in the last start while others continued; the summary has those of all starts."""
        assert self.run is not None, self.output
        states = json.loads((self.run / "progress.json").read_text())["trainers"]
        return [trainer for trainer, state in enumerate(states) if state == "dead"]

    def logs(self) -> str:
        """Return all logs, for the message of a failed test."""
        assert self.run is not None, self.output
        return self.output + "".join(f"\n== {p.name}\n{p.read_text()[-2000:]}" for p in (self.run / "logs").iterdir())


def environment() -> dict[str, str]:
    """Return the environment of a user who has activated the virtual environment, and of a test's sitecustomize."""
    path = os.pathsep.join([str(BIN), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(PROGRAMS / "startup")}


@functools.cache
def config(*options: str) -> list[str]:
    """Return the words that `mpidata config` prints."""
    done = subprocess.run([BIN / "mpidata", "config", *options], capture_output=True, text=True, check=True)
    return shlex.split(done.stdout)


def mpicc() -> str:
    """The compiler of the MPI that mpidata is built with."""
    return config("--mpicc")[0]


def variables_of(process: psutil.Process) -> dict[str, str]:
    """Environment of a process; not empty while it executes another program, unlike psutil's."""
    try:
        pairs = processes.variables_of(process.pid)
    except PermissionError:
        raise psutil.AccessDenied(process.pid) from None
    except OSError:
        raise psutil.NoSuchProcess(process.pid) from None
    return dict(os.fsdecode(pair).partition("=")[::2] for pair in pairs)


def ranks_of(folder: Path) -> list[psutil.Process]:
    """Processes that belong to a job whose run folder lies in this folder."""
    found = []
    for process in psutil.process_iter():
        try:
            variables = variables_of(process)
            run = variables.get("MPIDATA_RUN") or variables.get("MPIDATA_CARRIED_RUN", "")  # of a carried program
            if run.startswith(str(folder)):
                found.append(process)
            elif str(folder) in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def kill_ranks(folder: Path) -> None:
    """Kill the processes of `ranks_of`."""
    for rank in ranks_of(folder):
        with contextlib.suppress(psutil.NoSuchProcess):  # the process has just ended
            rank.kill()


def ranks_that(folder: Path, hold: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    """Processes as of `ranks_of` for which a condition holds, without those that end meanwhile."""
    found = []
    for process in ranks_of(folder):
        with contextlib.suppress(psutil.NoSuchProcess):
            if hold(process):
                found.append(process)
    return found


def named(processes: Iterable[psutil.Process], name: str) -> list[psutil.Process]:
    """Return the processes of this name that still run."""
    found = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):  # the process has just ended
            if process.name() == name:
                found.append(process)
    return found


class JobFolder:
    """A folder with a job file and its programs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.variables: dict[str, str] = {}  # environment variables: parameters of programs
        self._started: list[subprocess.Popen[str]] = []

    def write(self, **files: str) -> None:
        """Write files: train="..." becomes train.py."""
        for name, text in files.items():
            (self.path / f"{name}.py").write_text(text)

    def job(self, **keys: Any) -> None:
        """Write job.yaml; keys replace or extend those of a small job, nested one level."""
        job: dict[str, Any] = {
            "trainers": {"ranks": 1, "program": ["python", "train.py"]},
            "solvers": {"groups": 1},
            "parameters": {"count": 4, "space": {"alpha": [0.0, 1.0]}},
            "fields": {"u": {"dtype": "float32", "shape": [4, 6]}},
            "buffer": {"policy": "fifo", "capacity": 100},
        }
        for key, value in keys.items():
            if isinstance(value, dict) and key in job and key not in ("fields", "parameters"):
                job[key] = {**job[key], **value}
            else:
                job[key] = value
        self.write_job(job)

    def write_job(self, job: dict[str, Any]) -> None:
        """Write job.yaml with these keys alone."""
        (self.path / "job.yaml").write_text(yaml.safe_dump(job))

    def change_job(self, **keys: Any) -> None:
        """Replace these keys of job.yaml."""
        self.write_job(yaml.safe_load((self.path / "job.yaml").read_text()) | keys)

    def read_notes(self, name: str, trainers: int) -> list[Any]:
        """Return what each trainer has written to NAME-TRAINER.json."""
        return [json.loads((self.path / f"{name}-{trainer}.json").read_text()) for trainer in range(trainers)]

    def environment(self) -> dict[str, str]:
        """Return a user's environment, with the paths of modules such as numpy_stream and of a test's sitecustomize."""
        paths = [PROGRAMS, self.path, PROGRAMS / "startup"]
        return {**environment(), "PYTHONPATH": os.pathsep.join(map(str, paths)), **self.variables}

    def command(self, *arguments: str) -> list[str]:
        return [str(BIN / "mpidata"), "run", "job.yaml", *arguments]

    def start(self, *arguments: str, command: list[str] | None = None) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            command or self.command(*arguments),
            cwd=self.path,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._started.append(process)
        return process

    def finish(self, process: "subprocess.Popen[str]", timeout: float, started: float) -> Result:
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            kill_ranks(self.path)
            process.kill()
            output, _ = process.communicate()
            raise AssertionError(
                f"the job hung: not done after {timeout} s\n{self.result(1, output, 0).logs()}"
            ) from None
        return self.result(process.returncode, output, time.monotonic() - started)

    def result(self, status: int, output: str, seconds: float) -> Result:
        result = Result(status, output, seconds, newest_run(self.path))
        if result.run and (result.run / "summary.json").exists():
            result.summary = json.loads((result.run / "summary.json").read_text())
        return result

    def run(self, *arguments: str, timeout: float = 60, command: list[str] | None = None) -> Result:
        """Run the job to its end, and check that no process is left."""
        started = time.monotonic()
        result = self.finish(self.start(*arguments, command=command), timeout, started)
        self.assert_nothing_left()
        return result

    def resume(self, run: Path, *arguments: str, timeout: float = 60) -> Result:
        """Resume a run to its end, and check that no process is left."""
        return self.run(command=[*self.command()[:2], "--resume", str(run), *arguments], timeout=timeout)

    def end(self) -> None:
        """Kill what a failed test has left: first `mpidata run`, which might restart its job."""
        for process in self._started:
            process.kill()
            process.wait()
        kill_ranks(self.path)

    def assert_nothing_left(self, within_s: float = 2.0) -> None:
        deadline, late = time.monotonic() + within_s, False
        while left := ranks_of(self.path):
            if late:
                lines = []
                for process in left:
                    with contextlib.suppress(psutil.NoSuchProcess):  # the process has just ended
                        lines.append(" ".join(process.cmdline()))
                        process.kill()
                raise AssertionError(f"processes left behind: {lines}")
            time.sleep(0.05)
            late = time.monotonic() > deadline  # before the last look
        abandoned = [str(path) for path in folders_of(self.path)]
        assert not abandoned, f"left behind: {abandoned}"


def folders_of(folder: Path) -> list[Path]:
    """Folders for temporary files and shared memory of jobs whose run folders lie in this folder."""
    found = []
    for parent in (Path("/dev/shm"), Path(tempfile.gettempdir())):
        for path in parent.glob("mpidata-*"):
            try:
                if (path / "run").read_text().startswith(f"{folder}/"):
                    found.append(path)
            except OSError:
                continue
    return found
