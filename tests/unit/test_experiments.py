"""The parts of the experiments that train nothing."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments import heat
from experiments.heat.page import render
from experiments.intervals import Ratio
from experiments.runs import Part, Run, make


def test_ratios_are_taken_seed_by_seed() -> None:
    others = [1.0, 10.0, 100.0, 3.0, 7.0]
    ours = [0.5 * spread * other for other, spread in zip(others, [1, 1.1, 0.9, 1.05, 1], strict=True)]
    better = Ratio.of(ours, others)
    assert better.middle == pytest.approx(0.5, rel=0.02)
    assert 0.4 < better.low < better.middle < better.high < 0.55 and better.distinguishable
    even = Ratio.of([1.0, 2.0, 0.5, 1.0, 1.1], [1.0] * 5)
    assert even.low < 1 < even.high and not even.distinguishable and "not distinguishable" in str(even)


def test_runs_are_made_once_and_those_that_are_left_later(tmp_path: Path) -> None:
    made: list[str] = []

    def run(name: str, folder: Path) -> dict[str, Any]:
        assert folder.is_dir()
        made.append(name)
        if name == "c":
            raise RuntimeError("no")
        return {"name": name}

    part = Part("x", [Run(name, partial(run, name)) for name in "abcd"], lambda output: None)
    assert not make(part, tmp_path, 0.0) and made == ["a"]
    with pytest.raises(RuntimeError, match="no"):
        make(part, tmp_path, 10.0)
    assert made == ["a", "b", "c"] and json.loads((tmp_path / "b.json").read_text()) == {"name": "b"}
    (tmp_path / "c.json").write_text("{}")
    assert make(part, tmp_path, 10.0) and made[3:] == ["d"] and sorted(tmp_path.glob("*.part")) == []


def test_each_arm_of_the_heat_equation_has_each_seed_after_the_files_are_produced(tmp_path: Path) -> None:
    names = [run.name for run in heat.part(False, tmp_path).runs]
    assert len(names) == 26 and names[0] == "production" and "offline, few-4" in names


def result(scale: float, steps: int, produced: float = 0.0) -> str:
    marks = [{"steps": n, "seconds": n / 10, **dict.fromkeys(("mean", "p99", "max"), scale / n)} for n in (100, steps)]
    return json.dumps({"marks": marks} | ({"produced_s": produced} if produced else {}))


def test_the_page_compares_at_equal_steps_and_at_equal_time(tmp_path: Path) -> None:
    for seed in range(2):
        (tmp_path / f"reservoir-{seed}.json").write_text(result(1000.0 + seed, 400))
        (tmp_path / f"fifo-{seed}.json").write_text(result(2000.0 + 2 * seed, 100))
        (tmp_path / f"offline, all-{seed}.json").write_text(result(1000.0 + seed, 400, 30.0))
    render(["fifo", "reservoir", "offline, all"], 2, 100, tmp_path)
    text = (tmp_path / "heat.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| fifo")]
    assert rows[0].startswith("| fifo | 20.01 [2.00 (2.00 to 2.00)]") and rows[1] == "| fifo | – | – | – |"
    offline = [line for line in text.splitlines() if line.startswith("| offline, all")]
    assert "[4.00 (4.00 to 4.00)]" in offline[2]  # 30 s later it has the first mark only
    assert "[1.00 (1.00 to 1.00, not distinguishable)]" in offline[3]
    assert (tmp_path / "heat.png").read_bytes().startswith(b"\x89PNG")


def test_one_simulation_is_that_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(heat.__file__).parent))
    import problem

    parameters, fields = problem.held_out(3, 50)
    *_, (time, last) = problem.simulate(*parameters[1], 0.0)
    assert time == pytest.approx(0.5) and np.allclose(last["temperature"], fields[1, -1], atol=1e-3)
    # Long after, sides of one temperature make all of that temperature.
    even = np.array([[0.1, 500, 200, 200, 200, 200]])
    *_, end = problem.solve(even)
    assert abs(end - 200).max() < 500 * np.exp(-2 * np.pi**2 * 0.1 * 0.5) * (16 / np.pi**2)
