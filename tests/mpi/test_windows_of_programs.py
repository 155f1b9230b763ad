"""Windows of programs in three languages and of tries that differ, and the memory that windows take."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from jobs import JobFolder, python
from killing import STEPS, expected_samples
from test_heat2d_job import SOLVERS, built

__all__ = ["built"]  # a fixture
LANGUAGES = [("c", 2), ("fortran", 2), ("python", 1), ("fortran", 4), ("python", 4), ("c", 1)]


@pytest.mark.parametrize(
    ("language", "ranks"),
    [pytest.param(*of, marks=[] if of == ("fortran", 2) else pytest.mark.full) for of in LANGUAGES],
)
def test_windows_in_three_languages_are_correct(folder: JobFolder, built: Path, language: str, ranks: int) -> None:  # noqa: F811
    shutil.copytree(built, folder.path, dirs_exist_ok=True)
    job = yaml.safe_load((built / "heat2d.yaml").read_text())
    job |= {"name": "job", "validation": {"count": 0}, "samples": {"window": 3, "stride": 2, "run": 5}}
    job["trainers"]["program"] = python("trainers/checks/window_prints.py")
    job["solvers"] = {"groups": 2, "ranks_per_group": ranks, "program": SOLVERS[language]}
    job["parameters"]["count"] = 3
    job["buffer"] = {"policy": "firo", "capacity": 100, "watermark": 10, "tail": "drop"}
    folder.write_job(job)
    result = folder.run(timeout=100)
    assert result.status == 0 and result.run is not None, result.logs()
    steps = expected_samples(result.run, 3)
    windows = {f"{s}/{i}": [steps[f"{s}/{i + j}"] for j in (0, 2, 4)] for s in range(3) for i in range(STEPS - 4)}
    came = folder.read_notes("prints", 2)
    assert not came[0].keys() & came[1].keys() and result.summary["samples"]["received"] == len(windows)
    assert len(came[0]) == len(came[1]) >= len(windows) // 2 - 8  # surplus windows of a trainer are dropped
    assert {**came[0], **came[1]}.items() <= windows.items()


@pytest.mark.parametrize(
    ("lengths", "policy"),
    [
        ([12, 20], "fifo"),
        *[pytest.param(*of, marks=pytest.mark.full) for of in (([20, 6], "fifo"), ([9, 4, 15], "reservoir"))],
    ],
)
def test_windows_of_tries_with_other_lengths_do_not_mix(folder: JobFolder, lengths: list[int], policy: str) -> None:
    folder.variables["LENGTHS"] = json.dumps(lengths)
    folder.job(
        trainers={"ranks": 2, "program": python("trainers/checks/check_tries.py")},
        solvers={"groups": 2, "function": "functions.failing.tries_of_lengths:simulate", "retries": 4},
        parameters={"sampler": "grid", "space": {"alpha": {"values": [1, 2, 3]}}},
        buffer={"policy": policy, "capacity": 40, "tail": "repeat", **({} if policy == "fifo" else {"watermark": 2})},
        samples={"window": 3, "run": 4},
    )
    result = folder.run(timeout=120)
    assert result.status == 0, result.logs()
    assert len(result.summary["retries"]) == 3 * (len(lengths) - 1)
    seen = [tuple(of) for notes in folder.read_notes("seen", 2) for of in notes]
    for simulation in range(3):
        firsts = [first for of, first, _ in seen if of == simulation]
        assert len(firsts) == len(set(firsts)), "a window came from two tries"
        assert set(range(lengths[-1] - 2)) <= set(firsts) <= set(range(max(lengths) - 2))


def test_step_shared_by_several_windows_is_stored_once(folder: JobFolder) -> None:
    """Steps have 1 MB, 60 in the buffer: windows of six that held their own copies would take 360 MB."""
    solver = python("solvers/python/puts_numbers.py", 60, 512, 512)
    peaks = []
    for window in (1, 6):
        folder.job(
            trainers={"program": python("trainers/checks/window_memory.py")},
            solvers={"groups": 1, "program": solver},
            parameters={"count": 3, "space": {"alpha": [0.0, 1.0]}},
            fields={"u": {"dtype": "float32", "shape": [512, 512]}},
            buffer={"policy": "firo", "capacity": 60, "watermark": 5},
            samples={"window": window},
        )
        result = folder.run(timeout=100)
        assert result.status == 0, result.logs()
        peaks.append(int(result.log("trainer").split()[-1]))
    assert peaks[1] - peaks[0] < 45, peaks
