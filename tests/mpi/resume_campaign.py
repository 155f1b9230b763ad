"""One random run of the resume campaign: it is interrupted several times and resumed with changes, all from one seed.

A trainer, the scheduler, mpirun, `mpidata run` or all of them at once are killed: before the ranks have joined, while
they work, while a checkpoint is written, or at a system call that prepares the next start, which may also find the disk
full. Each start has other numbers of trainers, groups and ranks, another tail and another capacity.
Whatever happens, the run completes, each sample is received once, drawn once (fifo, firo; `tail: drop` may leave some)
and recorded once, and nothing is left.
"""

import contextlib
import json
import re
import shutil
import signal
import time
from pathlib import Path
from subprocess import Popen

import psutil
from jobs import BIN, JobFolder, Result, python, ranks_of
from kill_campaign import build
from killing import events_of, job_processes, wait_for_no_rank
from programs.drawn import used
from resume_checks import check_drawn, check_record, check_summary
from resume_draw import PART_S, Draw, Start, draw
from waiting import wait_until

__all__ = ["build", "draw", "run_draw"]

END_S = 20.0  # time for all ranks to end once one has been killed
# What the summary reports about the process that was killed.
CAUSES = {
    "trainer": r"Trainer \d \(rank \d\) (was killed by SIGKILL|has died)",
    "scheduler": r"The scheduler \(rank 0\) (was killed by SIGKILL|has died)",
    "mpidata-rank": r"(Trainer \d|The scheduler) \(rank \d\) (has died|is gone|vanished|was killed by SIGKILL)",
    "mpirun": r"The launcher was killed by SIGKILL",
}


def sections(built: Path, one: Draw, start: Start) -> dict[str, dict]:
    """The sections of the job file that change from start to start."""
    ends = len(one.starts) - 1
    census = python("trainers/census/census_logged.py", one.batch, ends, len(one.samples), PART_S)
    solvers = {
        "groups": start.groups,
        "ranks_per_group": start.ranks,
        "program": [str(built / "sized"), str(one.elements), str(one.steps), start.put, start.together, "100"],
        "start": start.start,
        "lifetime": start.lifetime,
        "retries": 20,
    }
    buffer = {"policy": one.policy, "capacity": start.capacity, "tail": start.tail}
    return {
        "trainers": {"ranks": start.trainers, "program": census},
        "solvers": solvers | ({"spares": start.spares} if start.start == "split" else {}),
        "buffer": buffer | ({} if one.policy == "fifo" else {"watermark": start.watermark}),
    }


def write_job(folder: JobFolder, built: Path, one: Draw) -> None:
    """Write the job file of the first start."""
    job = {
        "name": "job",
        "seed": one.seed,
        "parameters": {"count": one.simulations, "space": {"alpha": [0.0, 1.0]}},
        "validation": {"count": one.validation},
        "fields": {"u": {"dtype": "float32", "shape": [one.elements]}, "mark": {"dtype": "int64", "shape": []}},
        "checkpoint": {"every_s": one.every_s, "keep": 2, "within_s": 5},
        "launch": {"fault_tolerance": one.ulfm},
        **sections(built, one, one.starts[0]),
    }
    if one.record:
        job["record"] = {"path": "samples"}
    folder.write_job(job)


class Run:
    """A run, from its first start to its end."""

    def __init__(self, folder: JobFolder, built: Path, one: Draw) -> None:
        self.folder, self.built, self.one = folder, built, one
        self.said: list[str] = []
        write_job(folder, built, one)
        (folder.path / "ends").touch()  # trainers/census/census_logged.py waits for the ends

    def command(self, number: int) -> list[str]:
        start, runs = self.one.starts[number], self.folder.path / "runs" / "job"
        changed = sections(self.built, self.one, start) if number else {}
        sets = [word for key, value in changed.items() for word in ("--set", f"{key}={json.dumps(value)}")]
        again = ["--resume", str(runs / "1")] if number and not self.one.by_name else ["job.yaml"]
        command = [str(BIN / "mpidata"), "run", *again, *sets, *["--as", "night"] * self.one.by_name]
        if start.victim not in ("prepare", "disk"):
            return command
        fault = "signal=KILL" if start.victim == "prepare" else "error=ENOSPC"
        inject = f"inject={start.call}:{fault}:when={start.nth}"
        log = self.folder.path / f"strace-{number}.log"
        return ["strace", "-qq", "-o", str(log), "-e", f"trace={start.call}", "-e", inject, *command]

    def run(self) -> Result:
        """Start, interrupt and resume until the run is complete."""
        for number in range(len(self.one.starts)):
            result = self.begin(number)
            assert "Traceback" not in result.output, result.output
            with (self.folder.path / "ends").open("a") as ends:
                ends.write("x")
            if result.status == 0:
                return result
            assert number < len(self.one.starts) - 1, result.logs()
        raise AssertionError("not reached")

    def begin(self, number: int) -> Result:
        """Run one start to its end; repeat it if the previous start had not ended."""
        start = self.one.starts[number]
        began = time.monotonic()
        while True:
            done = len(self.said)
            process = self.folder.start(command=self.command(number))
            self.interrupt(process, start)
            result = self.folder.finish(process, timeout=150, started=began)
            if "still running" not in result.output or time.monotonic() > began + END_S:
                break
        interrupted = len(self.said) > done or start.victim in ("prepare", "disk")
        assert result.status == 0 or interrupted, f"start {number} has ended by itself\n{result.logs()}"
        if not start.at_once:
            self.wait_for_end()
        if start.victim and result.run is not None and result.status != 0:
            expected = {"term": (75,), "disk": (1, 2, -9), "prepare": (-9,), "mpidata": (-9,), "all": (-9,)}
            statuses = (*expected.get(start.victim, (1,)), *((1, -9) if start.early else ()))
            assert result.status in statuses, (result.status, result.output)
            if self.said[done:] == [start.victim] and start.victim in CAUSES:
                error = result.summary["error"]
                notes = [note.read_text() for note in (result.run / "exits").iterdir()]
                assert re.match(CAUSES[start.victim], error), f"{start.victim} was killed, but: {error}\n{notes}"
        return result

    def interrupt(self, process: "Popen[str]", start: Start) -> None:
        """Kill the chosen victims; returns after the kill, or if the start has already ended."""
        before = self.count("start")
        if start.early:
            here = "trainer" if start.early in ("mpidata", "all") else start.early
            self.wait_until(process, lambda: job_processes(self.folder.path, here, start.trainers), 60)
            time.sleep(start.early_s)
            before = self.count("start")
            self.kill(process, start, start.early)
        if not start.victim or not self.wait_until(process, lambda: self.count("start") > before, 90):
            return
        if start.after_checkpoint:
            written = self.count("checkpoint")
            self.wait_until(process, lambda: self.count("checkpoint") > written, 8, must=False)
        time.sleep(start.moment_s)
        if start.in_checkpoint:
            runs = self.folder.path / "runs" / "job"
            self.wait_until(process, lambda: any(runs.glob("*/checkpoints/*.new/*")), 2, must=False)
        # If the preparation finished before the chosen call, `mpidata run` is killed instead.
        self.kill(process, start, "mpidata" if start.victim in ("prepare", "disk") else start.victim)

    def count(self, name: str) -> int:
        """Count the events of this name in the run."""
        return sum(event["event"] == name for event in events_of(self.folder.path))

    def wait_until(self, process: "Popen[str]", condition, timeout_s: float, must: bool = True) -> bool:
        """Wait for a condition; False if the start ended first."""
        began = time.monotonic()
        try:
            wait_until(lambda: process.poll() is not None or condition(), timeout_s)
        except AssertionError:
            assert not must, self.folder.finish(process, 0, began)
            return False
        return process.poll() is None

    def kill(self, process: "Popen[str]", start: Start, victim: str) -> None:
        if process.poll() is not None:  # in its preparation, or by itself, which is checked later
            return
        launcher = psutil.Process(process.pid)
        if launcher.name() == "strace":
            launcher = next(iter(launcher.children()), launcher)
        number = signal.SIGTERM if victim == "term" else signal.SIGKILL
        if victim in ("mpidata", "term"):
            victims = [launcher]
        elif victim == "all":
            victims = [launcher, *ranks_of(self.folder.path)]
        else:
            found = job_processes(self.folder.path, victim, start.trainers)
            victims = [found[start.which % len(found)]] if found else []
        for one in victims:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.send_signal(number)
        self.said.append(victim if victims else f"no {victim}")

    def wait_for_end(self) -> None:
        wait_for_no_rank(self.folder, END_S)


def run_draw(folder: JobFolder, built: Path, seed: int) -> str:
    """Run the job of a seed in a folder, and check the result; returns a line that describes the run."""
    assert shutil.which("strace"), "strace is not installed"
    one = draw(seed)
    began = time.monotonic()
    run = Run(folder, built, one)
    result = run.run()
    folder.assert_nothing_left()
    parts = used(folder.path / "drawn")
    check_summary(one, result)
    check_drawn(one, parts, run_of(folder))
    if one.record:
        check_record(one, folder.path / "samples")
    resumed = ", ".join(str(part.resumed) for part in parts)
    return f"{time.monotonic() - began:.0f} s, {', '.join(run.said)}; went on at batches {resumed}"


def run_of(folder: JobFolder) -> int:
    """Return the number of the start that has completed."""
    return (folder.path / "ends").stat().st_size - 1
