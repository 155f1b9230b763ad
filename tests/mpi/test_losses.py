"""Losses by simulation, of two trainers, also over a resume: losses.csv matches NumPy."""

import numpy as np
import pytest
from jobs import JobFolder, python, read_lines, read_rows


@pytest.mark.parametrize("dies", [False, pytest.param(True, marks=pytest.mark.full)])
def test_losses_csv_agrees_with_numpy(folder: JobFolder, dies: bool) -> None:
    folder.job(
        trainers={"ranks": 2, "program": python("trainers/learning/tells_losses.py", *(["dies"] if dies else []))},
        solvers={"function": "functions.steps:simulate"},
        parameters={"count": 20, "space": {"alpha": [0.0, 1.0]}},
        buffer={"policy": "fifo", "capacity": 60},
    )
    result = folder.run()
    assert result.run is not None, result.output
    if dies:
        assert result.status == 1, result.logs()
        rows = read_rows(result.run / "losses.csv")
        assert sum(int(row["count"]) + int(row["not_finite"]) for row in rows.values()) == 2 * 4 * 5
        result = folder.resume(result.run)
    assert result.status == 0 and result.run is not None, result.logs()

    losses: dict[int, list[float]] = {}
    excess: dict[int, list[float]] = {}
    difficulty: dict[int, list[float]] = {}
    for path in folder.path.glob("told-*.jsonl"):
        for simulations, values in read_lines(path):
            good = np.array(values)[np.isfinite(values)]
            for simulation, value in zip(simulations, values, strict=True):
                losses.setdefault(simulation, []).append(value)
                above = max(0.0, (value - good.mean()) / good.std()) if np.isfinite(value) else 0.0
                excess.setdefault(simulation, []).append(above)
                known = np.isfinite(value) and good.min() >= 0
                floored = np.log(np.maximum(good, 1e-4 * good.mean())) if known else good
                harder = np.log(max(value, 1e-4 * good.mean())) - floored.mean() if known else 0.0
                difficulty.setdefault(simulation, []).append(harder)
    rows = read_rows(result.run / "losses.csv")
    assert rows.keys() == losses.keys() and len(rows) > 10
    assert rows.pop(2).items() >= {"count": "0", "mean": "0.0", "not_finite": str(len(losses.pop(2)))}.items()
    for simulation, row in rows.items():
        told = np.array(losses[simulation])
        assert int(row["count"]) == len(told) and row["not_finite"] == "0"
        np.testing.assert_allclose(float(row["mean"]), told.mean(), rtol=1e-12)
        np.testing.assert_allclose(float(row["excess"]), np.mean(excess[simulation]), rtol=1e-9)
        np.testing.assert_allclose(float(row["difficulty"]), np.mean(difficulty[simulation]), rtol=1e-9, atol=1e-12)
        assert float(row["max"]) == told.max() and float(row["last"]) in told
    summary = result.summary["losses"]
    assert summary["simulations"] == len(rows) + 1 and summary["count"] == sum(map(len, losses.values()))
