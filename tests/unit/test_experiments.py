"""The parts of the experiments that train nothing."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import mpidata
from experiments import heat, stepping
from experiments.heat.page import render
from experiments.intervals import Ratio
from experiments.runs import Part, Run, make
from experiments.stepping import page
from experiments.stepping.problem import EQUATIONS, burgers, solve


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
    assert make(part, tmp_path, 10.0) and made[3:] == ["d"] and len(list(tmp_path.iterdir())) == 4


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
    assert rows[0].startswith("| fifo | 20 [2.00 (2.00 to 2.00)]") and rows[1] == "| fifo | – | – | – |"
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


def test_each_arm_of_a_surrogate_that_steps_has_each_seed(tmp_path: Path) -> None:
    names = [run.name for run in stepping.part("burgers", False, tmp_path).runs]
    assert len(set(names)) == 30 and names[:3] == ["uniform-0", "breed-0", "power-0"]


def test_arms_are_compared_by_the_seeds_that_all_have(tmp_path: Path) -> None:
    for seed in range(3):
        for arm, scale in (("uniform", 1.0), ("breed", 0.5), ("power", 2.0)):
            if (arm, seed) != ("power", 2):
                errors = {
                    "mean": scale,
                    "p99": scale * 3**seed,
                    "max": 2.0 * 1.5 ** ((arm != "uniform") * (seed * 2 - 1)),
                }
                drawn = {"a": [0.1, 0.2], "b": [1.0, 2.0]}
                found = errors | {"steps": 100, "quantiles": [scale] * 101, "drawn": drawn}
                (tmp_path / f"{arm}-{seed}.json").write_text(json.dumps(found))
    page.render("burgers", ("uniform", "breed", "power"), 3, 400, ["a", "b"], tmp_path)
    text = (tmp_path / "burgers.md").read_text()
    assert "geometric mean over 2 seeds" in text and "| breed | 0.5 [0.50 (0.50 to 0.50)]" in text
    assert "breed is better in mean and p99, not distinguishable in max" in text
    assert "power is worse in mean and p99, not distinguishable in max" in text
    assert (tmp_path / "burgers.png").read_bytes().startswith(b"\x89PNG")


class Batches(list):
    """A stream, without a job, with parameters in the order of its job file."""

    parameter_names = ("pace", *reversed(EQUATIONS["burgers"].space))

    def losses(self, batch: dict[str, Any], losses: torch.Tensor) -> None:
        assert losses.shape == (len(batch["u"]),)


def test_a_surrogate_is_told_the_parameters_of_its_equation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(Path(stepping.__file__).parent))
    monkeypatch.setitem(sys.modules, "problem", stepping.problem)
    import online
    import surrogate

    told: list[torch.Tensor] = []
    step = surrogate.Training.step
    monkeypatch.setattr(surrogate.Training, "step", lambda self, p, u: told.append(p) or step(self, p, u))
    batch = {"parameters": torch.arange(24.0, dtype=torch.float64).reshape(4, 6), "u": torch.zeros(4, 3, 128)}
    monkeypatch.setattr(mpidata, "MPIStreamDataset", lambda batch_size: Batches([batch]))
    online.main("burgers", 0, 1, 8, tmp_path / "result.json")
    assert told[0].tolist() == batch["parameters"][:, [5, 4, 3, 2, 1]].tolist()


def test_burgers_equation_is_solved_as_by_cole_and_hopf() -> None:
    viscosity, amplitude = 0.1, 1.0
    *_, u = solve(EQUATIONS["burgers"], np.array([[np.log10(viscosity), 0.0, amplitude, 0.0, 0.0]]))
    # u = -2 nu phi_x / phi, and phi is the convolution of its start with the kernel of the heat equation.
    fine = 2 * np.pi * np.arange(4096) / 4096
    waves = np.fft.rfftfreq(4096, 1 / 4096)
    phi = np.fft.rfft(np.exp(-amplitude * (1 - np.cos(fine)) / (2 * viscosity))) * np.exp(-viscosity * 2.0 * waves**2)
    exact = -2 * viscosity * np.fft.irfft(1j * waves * phi) / np.fft.irfft(phi)
    assert abs(u[0] - exact[::32]).max() < 1e-4
    steps = list(burgers(0.0, log_viscosity=-1.0, mean=0.0, first=1.0, second=0.0, phase=0.0))
    assert len(steps) == 41 and steps[-1][0] == pytest.approx(2.0) and np.allclose(steps[-1][1]["u"], u[0], atol=1e-6)


def test_the_kuramoto_sivashinsky_equation_grows_by_its_unstable_waves() -> None:
    length = 2 * np.pi * np.sqrt(2)  # wave number 1 grows most, by exp(t / 4)
    states = list(solve(EQUATIONS["kuramoto-sivashinsky"], np.array([[length, 1e-4, 0.0, 0.0, 0.0]])))
    assert abs(states[-1]).max() == pytest.approx(1e-4 * np.exp(10.0 / 4), rel=0.01)
