"""Loaders and replicas: all ranks of a replica get the same rows with the same augmentations, each made once."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jobs import JobFolder, Result, python, read_lines

REPLICAS, EACH, EPOCHS = 2, 2, 3
ROWS = {"loader": 61, "files": 70}


def write_job(folder: JobFolder, **options: Any) -> None:
    program = python("trainers/replicas/files.py", json.dumps({"epochs": EPOCHS, **options}))
    parts = folder.path / "parts"
    parts.mkdir()
    for part in range(5):
        rows = np.arange(14 * part, 14 * part + 14)
        np.savez(parts / f"{part}.npz", row=rows, x=np.outer(rows, np.ones(900, np.float32)))
    folder.write_job(
        {
            "trainers": {"ranks": REPLICAS * EACH, "ranks_per_replica": EACH, "program": program},
            "loaders": {"ranks": 2},
            "checkpoint": {"every_s": 0.4},
        }
    )


def books(result: Result) -> list[list[dict[str, Any]]]:
    """Return what the replicas' first ranks have noted; the mates noted the same as long as both lived."""
    assert result.run is not None, result.output
    written = [read_lines(result.run / f"book-{rank}.jsonl") for rank in range(REPLICAS * EACH)]
    for rank, lines in enumerate(written):
        mine, firsts = (
            {(n["of"], n["epoch"], n["batch"]): n for n in of if "of" in n}
            for of in (lines, written[rank - rank % EACH])
        )
        for at in mine.keys() & firsts.keys():
            assert mine[at] == firsts[at], (rank, at)
    return written[::EACH]


def check(result: Result) -> None:
    """Each row came once an epoch over the replicas; a batch that came again after a resume was the same."""
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    rows: dict[tuple[str, int], list[int]] = defaultdict(list)
    for lines in books(result):
        digests: dict[tuple[str, int, int], str] = {}
        for line in (line for line in lines if "of" in line):
            at = line["of"], line["epoch"], line["batch"]
            assert digests.setdefault(at, line["digest"]) == line["digest"], (at, result.logs())
        kept = {(line["of"], line["epoch"], line["batch"]): line["rows"] for line in lines if "of" in line}
        for (of, epoch, _), came in kept.items():
            rows[of, epoch] += came
        assert lines[-1]["end"] == len(kept), (lines[-1], len(kept))
    for (of, epoch), came in rows.items():
        assert sorted(came) == list(range(ROWS[of])), (of, epoch, result.logs())
    assert len(rows) == 2 * EPOCHS


def test_mates_get_the_same_rows_and_augmentations(folder: JobFolder) -> None:
    write_job(folder)
    result = folder.run(timeout=100)
    check(result)
    logs = [Path(path).name for path in sorted(map(str, (result.run / "logs").iterdir()))]  # type: ignore[operator]
    assert [name for name in logs if "mate" in name] == ["rank-0003-mate-0-1.log", "rank-0004-mate-1-1.log"]
    assert result.summary["loaded"]["samples"] == EPOCHS * sum(ROWS.values()), result.summary


@pytest.mark.full
@pytest.mark.parametrize("killed", range(4))
def test_job_with_loaders_and_replicas_resumes_after_a_death(folder: JobFolder, killed: int) -> None:
    write_job(folder, kill=killed, pause_s=0.05)
    died = folder.run(timeout=100)
    assert died.status == 1 and died.run is not None and "SIGKILL" in died.summary["error"], died.logs()
    check(folder.resume(died.run, timeout=100))
