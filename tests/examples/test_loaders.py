"""The examples with loaders learn, and the script of one differs from torch's in an import only."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from jobs import JobFolder

IMAGES = Path(__file__).resolve().parents[2] / "examples" / "images"


def test_script_differs_from_torch_only_in_an_import() -> None:
    torch = (IMAGES / "train_torch.py").read_text()
    theirs = "from torch.utils.data import DataLoader, Dataset, DistributedSampler\n"
    ours = "from torch.utils.data import Dataset, DistributedSampler\n\nfrom mpidata import DataLoader\n"
    assert theirs in torch and torch.replace(theirs, ours) == (IMAGES / "train.py").read_text()


def job_of(example: Path, folder: Path) -> JobFolder:
    """Return a copy of an example in the test's folder, with the job name that the tests use."""
    for path in example.glob("*.py"):
        shutil.copy(path, folder)
    (job,) = example.glob("*.yaml")
    (folder / "job.yaml").write_text(job.read_text().replace(f"name: {example.name}", "name: job"))
    return JobFolder(folder)


@pytest.mark.full
def test_images_example_learns(tmp_path: Path) -> None:
    result = job_of(IMAGES, tmp_path).run(timeout=170)
    assert result.status == 0, result.logs()
    right = [int(percent) for percent in re.findall(r"(\d+)% right", result.log("trainer"))]
    assert len(right) == 4 and right[-1] > 90


@pytest.mark.full
def test_part_files_example_learns(tmp_path: Path) -> None:
    folder = job_of(IMAGES.parent / "parts", tmp_path)
    subprocess.run([sys.executable, "make_parts.py"], cwd=tmp_path, check=True, timeout=60)
    result = folder.run(timeout=170)
    assert result.status == 0, result.logs()
    right = [int(percent) for percent in re.findall(r"263 batches, (\d+)% right", result.log("trainer"))]
    assert len(right) == 3 and right[-1] > 88
