"""One random job of the fault campaign: one thing goes wrong, then the run is resumed, all from one seed.

Any process is killed, an mpidata-rank alone or with its program, while the ranks join, while they work, or at the end;
a fork fails; parts kill the loaders that count them; a resume requests a forbidden change. Whatever happens, the
job ends in time and reports the cause, nothing is left, a refused resume changes nothing, and the run completes with
each sample once.
"""

import contextlib
import dataclasses
import json
import random
import re
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import kill_campaign
import numpy as np
import psutil
from jobs import BIN, PROGRAMS, JobFolder, Result, config, environment, python, ranks_of, variables_of
from killing import events_of, wait_for_no_rank
from programs.drawn import used

END_S = 20.0  # time for all processes to end once `mpidata run` was killed
SIMULATIONS, STEPS, BATCH, ELEMENTS = 12, 12, 8, 500
PARTS, ROWS, EPOCHS = 4, 240, 2
# Keys of a job with a stream that a resume may not change.
REFUSED = ("samples.window=3", "buffer.policy=firo", "samples.statistics=true", "seed=99", "record={path: other}")
FORKS = ("mpidata-carrier", "mpidata-rank", "prterun", "prted")


@dataclasses.dataclass(frozen=True)
class Draw:
    """The choices of one seed."""

    seed: int
    kind: str  # stream, files
    fault: str  # kill, fork, bad
    trainers: int
    together: bool
    groups: int  # or loaders
    ranks: int  # of a group
    carried: bool
    start: str
    victim: str  # rank: an mpidata-rank; program; pair: both; mpirun; mpidata
    which: int
    moment: str  # early, work, left, end
    delay_s: float
    after_s: float  # how long the trainers work after their last batch
    fork: str
    bad: int  # parts that kill
    tolerate: int
    key: str  # that a resume requests and may not change
    step_s: float = 0.03
    batch: int = BATCH
    epochs: int = EPOCHS

    def __str__(self) -> str:
        """Return the choices in one line."""
        return " ".join(f"{key}={value}" for key, value in dataclasses.asdict(self).items())


def draw(seed: int) -> Draw:
    """Generate the job of a seed."""
    chosen = random.Random(f"fault campaign {seed}")
    fault = chosen.choice(["kill"] * 6 + ["fork", "bad"])
    kind = {"fork": "stream", "bad": "files"}.get(fault) or chosen.choice(["stream", "files"])
    carried = kind == "stream" and (fault == "fork" or chosen.random() < 0.2)
    return Draw(
        seed=seed,
        kind=kind,
        fault=fault,
        trainers=chosen.randint(1, 2),
        together=chosen.random() < 0.5,
        groups=chosen.randint(1, 2),
        ranks=1 if carried else chosen.randint(1, 2),
        carried=carried,
        start="split" if carried else chosen.choice(["split", "split", "spawn"]),
        victim=chosen.choice(["rank", "rank", "pair", "pair", "program", "program", "mpirun", "mpidata"]),
        which=chosen.randrange(1 << 16),
        moment=chosen.choice(["early", "work", "work", "left", "end", "end"]),
        delay_s=chosen.choice([0.0, chosen.uniform(0.0, 2.0)]),
        after_s=chosen.choice([0.0, 0.0, chosen.uniform(0.0, 3.0)]),
        fork=f"{chosen.choice(FORKS)}:{chosen.randint(1, 4)}",
        bad=chosen.randint(1, 2) if fault == "bad" else 0,
        tolerate=chosen.randint(0, 2),
        key=chosen.choice(["", *REFUSED]) if kind == "stream" else "",
    )


def build(folder: Path) -> None:
    """Build the solvers, and the library that makes a fork fail."""
    kill_campaign.build(folder)
    for command in (
        ["cc", "-O2", "-DCARRIED", PROGRAMS / "solvers/sized.c", "-o", folder / "carried", *config("--carried")],
        ["cc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", PROGRAMS / "preloads/fork_fails.c"]
        + ["-o", folder / "fork_fails.so", "-ldl"],
    ):
        done = subprocess.run(command, env=environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def write_job(folder: JobFolder, built: Path, one: Draw) -> None:
    """Write the job file and the parts."""
    job: dict[str, object] = {
        "name": "job",
        "seed": one.seed,
        "trainers": {"ranks": one.trainers, "program": python("trainers/census/census_faults.py")},
        "checkpoint": {"every_s": 0.5},
    }
    if one.kind == "stream":
        program = [
            str(built / ("carried" if one.carried else "sized")),
            str(ELEMENTS),
            str(STEPS),
            "put",
            "apart",
            "20000",
        ]
        solvers = {
            "groups": one.groups,
            "program": program,
            "start": one.start,
            "retries": 5,
            "ranks_per_group": one.ranks,
        }
        solvers |= {"spares": 1} if one.start == "split" else {}
        solvers |= {"carried": {"ranks": 1, "launcher": "none"}} if one.carried else {}
        job |= {
            "solvers": solvers,
            "parameters": {"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0]}},
            "fields": {"u": {"dtype": "float32", "shape": [ELEMENTS]}, "mark": {"dtype": "int64", "shape": []}},
            "buffer": {"policy": "fifo", "capacity": 60, "tail": "repeat"},
        }
    else:
        job["loaders"] = {"ranks": one.groups, "start": one.start, "retries": 1, "tolerate": one.tolerate}
        write_parts(folder.path, one)
    folder.write_job(job)
    (folder.path / "draw.json").write_text(json.dumps(dataclasses.asdict(one)))


def write_parts(folder: Path, one: Draw) -> None:
    """Write parts with consecutive row numbers; bad parts kill the process that reads them (killing_reader.py)."""
    (folder / "parts").mkdir()
    for number, rows in enumerate(np.array_split(np.arange(ROWS, dtype=np.float64), PARTS)):
        np.save(folder / "parts" / f"{'bad' if number < one.bad else 'good'}-{number}.npy", rows[:, None])


@dataclasses.dataclass
class Victim:
    """Processes that are killed together, and their role."""

    role: str
    processes: list[psutil.Process]


def victims(folder: Path, one: Draw) -> list[Victim]:
    """Return what may be killed, in the order of ranks."""
    found = []
    for process in ranks_of(folder):
        with contextlib.suppress(psutil.Error):
            if process.name() != "mpidata-rank" or process.parent().name() == "mpidata-rank":
                continue
            number = int(variables_of(process).get("OMPI_COMM_WORLD_RANK", -1))
            spawned = {"--group", "--loader"} & set(process.cmdline())
            role = "other" if spawned or number > one.trainers else "trainer" if number else "scheduler"
            children = process.children()
            those = {"rank": [process], "program": children, "pair": [process, *children]}.get(one.victim, [])
            if those:
                found.append((bool(spawned), number, Victim(role, those)))
    return [victim for *_, victim in sorted(found, key=lambda entry: entry[:2])]


class Start:
    """A start of the run in which something is killed."""

    def __init__(self, folder: JobFolder, one: Draw, command: list[str]) -> None:
        self.killed = "nothing"
        self._folder, self._one = folder, one
        self._began = time.monotonic()
        self._process = folder.start(command=command)

    def finish(self) -> Result:
        """Kill the chosen victim at the chosen moment, and wait for the end."""
        if self._one.fault == "kill" and self._wait_for_moment():
            time.sleep(self._one.delay_s)
            self._kill()
        result = self._folder.finish(self._process, timeout=120, started=self._began)
        if result.status == -signal.SIGKILL:  # the next job removes its folders
            wait_for_no_rank(self._folder, END_S)
        else:
            self._folder.assert_nothing_left()
        return result

    def _wait_for_moment(self) -> bool:
        while self._process.poll() is None:
            events = {event["event"] for event in events_of(self._folder.path)}
            summaries = list((self._folder.path / "runs" / "job").glob("*/summary.json"))
            if {
                "early": bool(self._choose()),
                "work": "start" in events,
                "left": bool({"trainer_left", "group_left", "end_of_stream"} & events),
                "end": bool(summaries) or "end" in events,
            }[self._one.moment]:
                return True
            time.sleep(0.003)
        return False

    def _choose(self) -> list[Victim]:
        """Return what may be killed now."""
        folder, victim = self._folder.path, self._one.victim
        if victim == "mpidata":
            return [Victim("mpidata", [psutil.Process(self._process.pid)])]
        if victim == "mpirun":
            return [Victim("mpirun", [one]) for one in ranks_of(folder) if _name(one) in ("prterun", "mpirun")]
        return victims(folder, self._one)

    def _kill(self) -> None:
        with contextlib.suppress(psutil.Error):
            found = self._choose()
            for process in found[self._one.which % len(found)].processes if found else []:
                process.kill()
                self.killed = f"{found[self._one.which % len(found)].role} {self._one.victim}"


def _name(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return str(process.name())
    return ""


def first_command(built: Path, one: Draw) -> list[str]:
    """Return `mpidata run job.yaml`; if a fork fails, in a PID namespace, so that it can signal no other processes."""
    command = [str(BIN / "mpidata"), "run", "job.yaml"]
    if one.fault != "fork":
        return command
    preload = ["env", f"LD_PRELOAD={built}/fork_fails.so", f"FORK_FAILS={one.fork}"]
    return ["unshare", "-pf", "--mount-proc", "--kill-child", "sh", "-c", '"$@"; exit $?', "sh", *preload, *command]


def run_draw(folder: JobFolder, built: Path, seed: int) -> str:
    """Run the job of a seed in a folder, and check the result; returns a line that describes the run."""
    one = draw(seed)
    began = time.monotonic()
    write_job(folder, built, one)
    start = Start(folder, one, first_command(built, one))
    result = start.finish()
    assert "Traceback" not in result.output, result.output
    if one.fault == "bad":
        check_bad(one, folder.path, result)
    elif result.status == 0:
        assert result.summary["status"] == "complete", result.logs()
    elif start.killed != "mpidata mpidata" or result.summary.get("status") != "complete":  # only the report was missing
        check_failed(one, start.killed, result)
        result = resume(folder, one, result)
    if one.fault != "bad":
        check_drawn(one, folder.path)
    return f"{time.monotonic() - began:.0f} s, {start.killed} killed, {result.summary.get('status')}"


def check_failed(one: Draw, killed: str, result: Result) -> None:
    """The error names the cause, and a rank that could be replaced has not ended a working job."""
    if killed == "mpidata mpidata" or result.run is None:
        return
    error = result.summary.get("error") or ""
    assert killed != "nothing" or one.fault == "fork", f"failed by itself: {error}\n{result.logs()}"
    assert error.strip() and len(result.output.strip()) > 0, result.logs()
    joined = any(event["event"] == "start" for event in events_of(result.run.parents[2]))
    assert not (killed.startswith("other") and one.moment == "work" and joined), f"{killed}: {error}\n{result.logs()}"
    if killed.startswith("trainer") and joined:
        assert re.match(r"Trainer \d \(rank \d\) (was killed by SIGKILL|has died|is gone|vanished)", error), error


def resume(folder: JobFolder, one: Draw, before: Result) -> Result:
    """Request a forbidden change, which changes nothing; then resume the run to its end."""
    wait_for_no_rank(folder, 60)  # ranks of a killed `mpidata run`: its folders are not abandoned before they end
    if not before.summary and before.run is not None and _is_complete(before.run):  # the job has completed without it
        return before
    (folder.path / "draw.json").write_text(json.dumps({**dataclasses.asdict(one), "after_s": 0.0}))
    command = [str(BIN / "mpidata"), "run", "job.yaml"]
    if before.run is not None and (before.run / "job.yaml").exists():
        command[2:] = ["--resume", str(before.run)]
        if one.key:
            was = content(before.run)
            began = time.monotonic()
            refused = folder.finish(folder.start(command=[*command, "--set", one.key]), timeout=60, started=began)
            assert refused.status not in (0, 75) and one.key.split("=")[0] in refused.output, refused.output
            assert content(before.run) == was, "a refused resume has changed the run"
    result = folder.run(command=command, timeout=150)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    return result


def _is_complete(run: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return bool(json.loads((run / "summary.json").read_text())["status"] == "complete")
    return False


def content(run: Path) -> dict[str, bytes]:
    """Return all files of a run by name."""
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}


def check_drawn(one: Draw, folder: Path) -> None:
    """Each sample was used once; each row once an epoch."""
    keys = Counter(key for part in used(folder / "drawn") for key in part.keys())
    first, second = (SIMULATIONS, STEPS) if one.kind == "stream" else (EPOCHS, ROWS)
    assert keys == Counter(f"{a}/{b}" for a in range(first) for b in range(second)), keys.most_common(3)


def check_bad(one: Draw, folder: Path, result: Result) -> None:
    """Up to the tolerated number, parts that kill are left out; if there are more, the job fails and names one."""
    if one.bad > one.tolerate:
        assert result.status == 1 and "bad-" in result.summary["error"], result.logs()
        return
    assert result.status == 0, result.logs()
    keys = Counter(key for part in used(folder / "drawn") for key in part.keys())
    first = one.bad * ROWS // PARTS
    assert keys.keys() <= {f"{epoch}/{row}" for epoch in range(EPOCHS) for row in range(first, ROWS)}
    assert max(keys.values()) == 1 and keys.total() > (ROWS - first - BATCH) * EPOCHS, keys.total()
