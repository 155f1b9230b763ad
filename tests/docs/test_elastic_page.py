"""The job of docs/elastic.md continues when one of its trainers is killed."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
from jobs import JobFolder, environment, ranks_of, variables_of
from pages import ROOT, files
from waiting import wait_until


def _trainer(folder: Path) -> psutil.Process | None:
    """Return the process of the second trainer's script once it trains, else None."""
    if '"epoch"' not in (text := next(iter((folder / "runs").glob("*/*/events.jsonl")), Path(os.devnull)).read_text()):
        return None
    assert '"end"' not in text, text
    for process in ranks_of(folder):
        with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
            if variables_of(process).get("OMPI_COMM_WORLD_RANK") == "2" and "train_elastic.py" in process.cmdline():
                return process
    return None


def test_job_continues_after_a_trainer_is_killed(tmp_path: Path) -> None:
    for name, text in files(ROOT / "docs" / "elastic.md").items():
        (tmp_path / name).write_text(text.replace("range(rows.resumed[0], 3)", "range(rows.resumed[0], 30)"))
    subprocess.run([sys.executable, "make_parts.py"], cwd=tmp_path, check=True)
    folder = JobFolder(tmp_path)
    try:
        job = folder.start(command=[*folder.command()[:2], "elastic.yaml"])
        wait_until(lambda: _trainer(tmp_path), 60, alive=job).send_signal(signal.SIGKILL)
        output, _ = job.communicate(timeout=60)
    finally:
        folder.end()
    assert job.returncode == 0, output
    assert "3 trainers before, 2 now" in output and "1 lost, and the others went on" in output, output


def test_the_script_runs_without_a_job(tmp_path: Path) -> None:
    for name, text in files(ROOT / "docs" / "elastic.md").items():
        (tmp_path / name).write_text(text)
    for script in ("make_parts.py", "train_elastic.py"):
        done = subprocess.run([sys.executable, script], cwd=tmp_path, env=environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
