"""The job of docs/parameter-server.md trains, and its script runs without a job."""

import subprocess
import sys
from pathlib import Path

import torch
from jobs import JobFolder, environment
from pages import ROOT, files


def write(folder: Path) -> None:
    for name, text in files(ROOT / "docs" / "parameter-server.md").items():
        (folder / name).write_text(text)
    subprocess.run([sys.executable, "make_rows.py"], cwd=folder, check=True)


def check(folder: Path) -> None:
    """Check that the model has learned the sum."""
    model = torch.nn.Linear(4, 1)
    model.load_state_dict(torch.load(folder / "model.pt"))
    with torch.no_grad():
        x = torch.rand(100, 4)
        loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    assert loss < 0.1, loss


def test_the_job_trains(tmp_path: Path) -> None:
    write(tmp_path)
    folder = JobFolder(tmp_path)
    try:
        result = folder.run(command=[*folder.command()[:2], "served.yaml"], timeout=120)
    finally:
        folder.end()
    assert result.status == 0, result.output
    check(tmp_path)


def test_the_script_runs_without_a_job(tmp_path: Path) -> None:
    write(tmp_path)
    command = [sys.executable, "train_served.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    check(tmp_path)
