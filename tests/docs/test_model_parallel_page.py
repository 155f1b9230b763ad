"""The job of docs/model-parallel.md trains on a mesh of two by two."""

from pathlib import Path

from jobs import JobFolder
from pages import ROOT, files


def test_the_job_trains(tmp_path: Path) -> None:
    for name, text in files(ROOT / "docs" / "model-parallel.md").items():
        (tmp_path / name).write_text(text)
    folder = JobFolder(tmp_path)
    command = [*folder.command()[:2], "mesh.yaml", "--set", "name=job", "--set", "parameters.count=8"]
    try:
        result = folder.run(command=command, timeout=170)
    finally:
        folder.end()
    assert result.status == 0, result.output
    loss = result.summary["training"]["loss"]
    assert loss["last"] < loss["first"] and result.summary["replicas"] == {"count": 2, "ranks": 2}
