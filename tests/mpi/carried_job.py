"""A job with carried programs, whose trainer compares every element."""

import json
from collections import Counter
from pathlib import Path

from jobs import JobFolder, Result, python

STEPS, SIMULATIONS = 8, 12


def write_job(folder: JobFolder, program: Path, *arguments: str, depth: int = 900, **more: object) -> None:
    solvers = {"groups": 2, "carried": {"ranks": 1}, "program": [str(program), str(STEPS), *arguments], **more}
    folder.job(
        **{
            "trainers": {"ranks": 1, "program": python("trainers/checks/check_windows.py", 1, 0)},
            "solvers": solvers,
            "parameters": {"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0], "beta": [5, 6]}},
            "fields": {
                "line": {"dtype": "float64", "shape": [37]},
                "plane": {"dtype": "float32", "shape": [13, 70]},
                "cube": {"dtype": "float32", "shape": [5, 4, depth]},
                "whole": {"dtype": "int64", "shape": [3]},
                "scalar": {"dtype": "float64", "shape": []},
            },
            "buffer": {"policy": "fifo", "capacity": 100},
        }
    )


def drawn_before(folder: JobFolder, result: Result) -> list[list[int]]:
    """Return the samples that earlier starts had drawn by the checkpoints from which they were resumed."""
    starts = [path.read_text().splitlines() for path in sorted(folder.path.glob("drawn-*-0"))]
    if len(starts) < 2:
        return []
    said = [line for line in result.log("trainer").splitlines() if line.startswith("resumed at batch ")]
    begins = [int(line.split()[-1]) for line in said]  # of starts that have drawn something
    before = zip(filter(None, starts), begins, begins[1:], strict=False)
    return [key for lines, begin, end in before for line in lines[: end - begin] for key in json.loads(line)]


def check(folder: JobFolder, result: Result) -> None:
    """Check that each sample arrived once; check_windows.py has compared every element."""
    assert result.status == 0, result.logs()
    assert result.summary["simulations"] == {"requested": SIMULATIONS, "complete": SIMULATIONS, "failed": 0}
    seen = folder.read_notes("seen", 1)[0]["seen"] + drawn_before(folder, result)
    assert Counter(map(tuple, seen)) == Counter((s, step) for s in range(SIMULATIONS) for step in range(STEPS + s % 3))
