"""One draw of the fault campaign: a job in which one thing goes wrong, and its resume, all from one seed.

Any process is killed, an mpidata-rank alone or with its program, while the ranks join, while they work, or at the end;
a fork fails; parts kill the loaders that count them; a resume asks for what it may not change. Whatever happens, the
job ends in time and says why, nothing is left, a refused resume changes nothing, and the run completes with each sample
once.
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
from jobs import BIN, PROGRAMS, JobFolder, Result, config, environment, python, ranks_of
from killing import events_of
from programs.drawn import used

END_S = 20.0  # for all processes to go, once `mpidata run` was killed
SIMULATIONS, STEPS, BATCH, ELEMENTS = 12, 12, 8, 500
PARTS, ROWS, EPOCHS = 4, 240, 2
# Keys that a resume may not change, of a job with a stream.
REFUSED = ("samples.window=3", "buffer.policy=firo", "samples.statistics=true", "seed=99", "record={path: other}")
FORKS = ("mpidata-carrier", "mpidata-rank", "prterun", "prted")


@dataclasses.dataclass(frozen=True)
class Draw:
    """What one seed has chosen."""

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
    after_s: float  # for which the trainers work on after their last batch
    fork: str
    bad: int  # parts that kill
    tolerate: int
    key: str  # that a resume asks for and may not change
    step_s: float = 0.03
    batch: int = BATCH
    epochs: int = EPOCHS

    def __str__(self) -> str:
        """In one line."""
        return " ".join(f"{key}={value}" for key, value in dataclasses.asdict(self).items())


def draw(seed: int) -> Draw:
    """Choose."""
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
    """Build the solvers, and what lets a fork fail."""
    kill_campaign.build(folder)
    for command in (
        ["cc", "-O2", "-DCARRIED", PROGRAMS / "solvers/sized.c", "-o", folder / "carried", *config("--carried")],
        ["cc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", PROGRAMS / "preloads/fork_fails.c"]
        + ["-o", folder / "fork_fails.so", "-ldl"],
    ):
        done = subprocess.run(command, env=environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def write_job(folder: JobFolder, built: Path, one: Draw) -> None:
    """Write its job file, and its parts."""
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
    """Write parts whose rows are numbered through; those that are bad kill who reads them (killing_reader.py)."""
    (folder / "parts").mkdir()
    for number, rows in enumerate(np.array_split(np.arange(ROWS, dtype=np.float64), PARTS)):
        np.save(folder / "parts" / f"{'bad' if number < one.bad else 'good'}-{number}.npy", rows[:, None])


@dataclasses.dataclass
class Victim:
    """What was killed."""

    role: str
    processes: list[psutil.Process]


def victims(folder: Path, one: Draw) -> list[Victim]:
    """What may be killed, in the order of ranks."""
    found = []
    for process in ranks_of(folder):
        with contextlib.suppress(psutil.Error):
            if process.name() != "mpidata-rank" or process.parent().name() == "mpidata-rank":
                continue
            number = int(process.environ().get("OMPI_COMM_WORLD_RANK", -1))
            spawned = {"--group", "--loader"} & set(process.cmdline())
            role = "other" if spawned or number > one.trainers else "trainer" if number else "scheduler"
            children = process.children()
            those = {"rank": [process], "program": children, "pair": [process, *children]}.get(one.victim, [])
            if those:
                found.append((bool(spawned), number, Victim(role, those)))
    return [victim for *_, victim in sorted(found, key=lambda entry: entry[:2])]


class Start:
    """A start of the run, of which something is killed."""

    def __init__(self, folder: JobFolder, one: Draw, command: list[str]) -> None:
        self.killed = "nothing"
        self._folder, self._one = folder, one
        self._began = time.monotonic()
        self._process = folder.start(command=command)

    def finish(self) -> Result:
        """Kill what is to be killed, and wait for the end."""
        if self._one.fault == "kill" and self._wait_for_moment():
            time.sleep(self._one.delay_s)
            self._kill()
        result = self._folder.finish(self._process, timeout=120, started=self._began)
        if result.status == -signal.SIGKILL:  # its folders go with the next job
            deadline = time.monotonic() + END_S
            while left := ranks_of(self._folder.path):
                assert time.monotonic() < deadline, [process.cmdline() for process in left]
                time.sleep(0.05)
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
        """What may be killed now."""
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
    """`mpidata run job.yaml`; where a fork fails, among processes of a namespace, which alone it could signal."""
    command = [str(BIN / "mpidata"), "run", "job.yaml"]
    if one.fault != "fork":
        return command
    preload = ["env", f"LD_PRELOAD={built}/fork_fails.so", f"FORK_FAILS={one.fork}"]
    return ["unshare", "-pf", "--mount-proc", "--kill-child", "sh", "-c", '"$@"; exit $?', "sh", *preload, *command]


def run_draw(folder: JobFolder, built: Path, seed: int) -> str:
    """Run the draw of a seed in a folder, and check what came; returns a line that says what happened."""
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
    elif start.killed != "mpidata mpidata" or result.summary.get("status") != "complete":  # else it had only to say so
        check_failed(one, start.killed, result)
        result = resume(folder, one, result)
    if one.fault != "bad":
        check_drawn(one, folder.path)
    return f"{time.monotonic() - began:.0f} s, {start.killed} killed, {result.summary.get('status')}"


def check_failed(one: Draw, killed: str, result: Result) -> None:
    """It says why; and what could be replaced has ended no job that was at work."""
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
    """Ask for a key that may not change, which changes nothing; then go on with the run to its end."""
    began = time.monotonic()
    while ranks_of(folder.path):  # of a killed `mpidata run`: until they have ended, its folders are not abandoned
        assert time.monotonic() - began < 60
        time.sleep(0.05)
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


def content(run: Path) -> dict[str, bytes]:
    """All files of a run by name."""
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}


def check_drawn(one: Draw, folder: Path) -> None:
    """Each sample was used once; each row once an epoch."""
    keys = Counter(key for part in used(folder / "drawn") for key in part.keys())
    first, second = (SIMULATIONS, STEPS) if one.kind == "stream" else (EPOCHS, ROWS)
    assert keys == Counter(f"{a}/{b}" for a in range(first) for b in range(second)), keys.most_common(3)


def check_bad(one: Draw, folder: Path, result: Result) -> None:
    """Parts that kill are left out, as many as are tolerated; else the job fails and names one."""
    if one.bad > one.tolerate:
        assert result.status == 1 and "bad-" in result.summary["error"], result.logs()
        return
    assert result.status == 0, result.logs()
    keys = Counter(key for part in used(folder / "drawn") for key in part.keys())
    first = one.bad * ROWS // PARTS
    assert keys.keys() <= {f"{epoch}/{row}" for epoch in range(EPOCHS) for row in range(first, ROWS)}
    assert max(keys.values()) == 1 and keys.total() > (ROWS - first - BATCH) * EPOCHS, keys.total()
