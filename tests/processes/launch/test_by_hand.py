"""`mpirun -n N mpidata run JOB`, with the real mpirun, and the file in which rank 0 reports the run folder."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from launch_job import clean_environment, mpidata_command, write_job

from mpidata.errors import LaunchError
from mpidata.launch.starting import by_hand
from mpidata.launch.starting.environment import Place
from mpidata.startup import stop_early

_SMALL = ("--set", "trainers.ranks=1", "--set", "solvers.groups=1", "--set", "solvers.ranks_per_group=1")


@pytest.fixture
def start(shim: Path, require: Callable[[str], str]) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    mpirun = require("mpirun")

    def run(ranks: int, job: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return subprocess.run(
            [mpirun, "-n", str(ranks), "--map-by", ":OVERSUBSCRIBE"]
            + mpidata_command(job, "run", *([] if "--resume" in arguments else [str(job)]), *arguments),
            env=clean_environment(MPIDATA_RANK=str(shim), **root),
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


def test_run_started_with_mpirun_completes(
    tmp_path: Path, start: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    done = start(3, write_job(tmp_path, solver="echo $MPIDATA_RUN"), *_SMALL)
    run = tmp_path / "runs" / "job" / "1"
    assert done.returncode == 0, done.stderr
    folder, warning = done.stderr.splitlines()
    assert folder == f"mpidata: run folder {run}"
    assert warning.endswith(" runs without ULFM: if any rank dies, this run ends there.")
    assert json.loads((run / "summary.json").read_text())["status"] == "complete"
    assert len(os.listdir(run / "logs")) == 3
    assert (run / "logs" / "rank-0002-solver-0-0.log").read_text() == f"{run}\n"
    assert os.listdir(tmp_path / "runs" / "job") == ["1"]


@pytest.mark.full
def test_resume_by_hand(tmp_path: Path, start: Callable[..., "subprocess.CompletedProcess[str]"]) -> None:
    job, run = write_job(tmp_path, solver="echo started"), tmp_path / "runs" / "job" / "1"
    assert start(3, job, *_SMALL).returncode == 0
    refused = start(3, job, "--resume", str(run))
    assert refused.returncode == 2 and refused.stderr.count("is complete, so there is nothing to resume") == 1
    (run / "summary.json").write_text('{"status": "stopped"}')
    done = start(3, job, "--resume", str(run))
    assert done.returncode == 0, done.stderr
    assert f"mpidata: Resuming {run}: it has no usable checkpoint, so it starts over.\n" in done.stderr
    assert json.loads((run / "summary.json").read_text())["status"] == "complete"
    log = (run / "logs" / "rank-0002-solver-0-0.log").read_text()
    assert log == "started\nmpidata: Another start of this run.\nstarted\n"
    assert os.listdir(tmp_path / "runs" / "job") == ["1"]
    started = time.monotonic()
    assert "--restarts needs `mpidata run` without a launcher" in start(3, job, "--restarts", "1").stderr
    assert time.monotonic() - started < 15


def test_wrong_number_of_ranks_is_refused(
    tmp_path: Path, start: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    started = time.monotonic()
    done = start(3, write_job(tmp_path))
    assert done.returncode == 2 and time.monotonic() - started < 15
    said = re.findall("mpidata: .*", done.stderr)
    assert len(said) == 1 and said[0].endswith("job.yaml. Start it with -n 7.")
    assert "started 3 ranks, but the job has 7: 1 scheduler, 2 trainers and 2 groups of 2" in said[0]
    assert not (tmp_path / "runs").exists()


def test_single_rank_is_refused_with_a_hint_at_another_mpirun(
    tmp_path: Path, start: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    done = start(1, write_job(tmp_path))
    assert done.returncode == 2
    assert "started 1 rank, but" in done.stderr and "/mpirun -n 7: the mpirun of another MPI" in done.stderr


@pytest.mark.parametrize("setting", ["buffer.capcity=3", "output=/proc/none"])
def test_only_rank_0_prints_the_error(
    tmp_path: Path, start: Callable[..., "subprocess.CompletedProcess[str]"], setting: str
) -> None:
    done = start(3, write_job(tmp_path), *_SMALL, "--set", setting)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert len(re.findall("mpidata: .*", done.stderr)) == 1


def test_other_ranks_end_silently_with_the_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handlers = []
    monkeypatch.setattr(by_hand.time, "sleep", lambda _: handlers.append(signal.getsignal(signal.SIGTERM)))
    before = signal.signal(signal.SIGTERM, stop_early)
    try:
        with pytest.raises(SystemExit):
            by_hand.run_by_hand(str(write_job(tmp_path)), (), Place(1, 3, "job"))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert handlers == [signal.SIG_DFL]


def test_run_folder_is_found_once_rank_0_has_reported_it(tmp_path: Path) -> None:
    file = tmp_path / "runs" / "told"
    timer = threading.Timer(0.3, by_hand.tell_run, (file, tmp_path))
    timer.start()
    assert by_hand.find_run(file, 10) == tmp_path
    timer.join()


def test_run_folder_that_was_reported_is_found_however_late_this_rank_looks(tmp_path: Path) -> None:
    by_hand.tell_run(tmp_path / "told", tmp_path)
    assert by_hand.find_run(tmp_path / "told", 0.0) == tmp_path


def test_launcher_is_found_below_a_script_whose_name_is_not_utf8(tmp_path: Path) -> None:
    script = os.path.join(os.fsencode(tmp_path), b"\xff")
    code = "from mpidata.launch.starting import by_hand; print(by_hand._launcher_started())"
    Path(os.fsdecode(script)).write_text(f"#!/bin/sh\n'{sys.executable}' -c '{code}'\n:\n")
    os.chmod(script, 0o755)
    done = subprocess.run([script], env=clean_environment(PMIX_RANK="0"), capture_output=True, text=True)
    assert done.returncode == 0 and float(done.stdout) > 0, done.stderr


def test_refusal_of_rank_0_reaches_the_other_ranks(tmp_path: Path) -> None:
    by_hand.tell_run(tmp_path / "told", error="No room. disk. Make some.")
    with pytest.raises(LaunchError, match=r"^No room\. disk\. Make some\.$"):
        by_hand.find_run(tmp_path / "told", 10)


@pytest.mark.parametrize("boot", ["this", "another"])
def test_report_of_an_earlier_job_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boot: str) -> None:
    file = tmp_path / "told"
    by_hand.tell_run(file, run=tmp_path)
    told = json.loads(file.read_text())
    if boot == "this":
        told["uptime"] = by_hand._launcher_started() - 0.1  # the launcher started right after it
    else:
        told["boot"] = "another"
        told["time"] -= by_hand._uptime() - by_hand._launcher_started() + 40
    file.write_text(json.dumps(told))
    with pytest.raises(LaunchError, match="has not reported the run folder within 0 s"):
        by_hand.find_run(file, 0.2)
    by_hand.tell_run(file, run=tmp_path)
    assert by_hand.find_run(file, 0.2) == tmp_path


def test_scripts_between_launcher_and_rank_do_not_count() -> None:
    # A launcher, and a second later a script with a rank in its environment, which starts the rank.
    code = (
        "import os; from mpidata.launch.starting import by_hand; script = float(by_hand._stat(os.getppid())[19]) / 100;"
        "print(script - by_hand._launcher_started())"
    )
    done = subprocess.run(
        ["sh", "-c", 'sleep 1; PMI_RANK=0 sh -c \'"$PYTHON" -c "$CODE"; true\'; true'],
        env={**clean_environment(), "PYTHON": sys.executable, "CODE": code},
        capture_output=True,
        text=True,
    )
    assert 0.9 < float(done.stdout) < 10, done


def test_old_files_are_removed(tmp_path: Path) -> None:
    old, new = tmp_path / ".start-a.json", tmp_path / ".start-b.json"
    for file in (old, new):
        by_hand.tell_run(file, run=tmp_path)
    os.utime(old, (1, 1))
    by_hand._remove_old(tmp_path)
    assert not old.exists() and new.exists()
