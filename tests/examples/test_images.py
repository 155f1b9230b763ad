"""The example with loaders: its script is torch's but for an import, and it learns."""

import re
import shutil
from pathlib import Path

import pytest
from jobs import JobFolder

IMAGES = Path(__file__).resolve().parents[2] / "examples" / "images"


def test_the_script_differs_in_an_import_only() -> None:
    torch = (IMAGES / "train_torch.py").read_text()
    theirs = "from torch.utils.data import DataLoader, Dataset, DistributedSampler\n"
    ours = "from torch.utils.data import Dataset, DistributedSampler\n\nfrom mpidata import DataLoader\n"
    assert theirs in torch and torch.replace(theirs, ours) == (IMAGES / "train.py").read_text()


@pytest.mark.full
def test_it_learns(tmp_path: Path) -> None:
    for path in IMAGES.iterdir():
        shutil.copy(path, tmp_path / path.name.replace("images.yaml", "job.yaml"))
    result = JobFolder(tmp_path).run(timeout=170)
    assert result.status == 0, result.logs()
    right = [int(percent) for percent in re.findall(r"(\d+)% right", result.log("trainer"))]
    assert len(right) == 4 and right[-1] > 90
