"""The parts of the experiments that train nothing."""

import dataclasses
import itertools
import json
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import mpidata
from experiments import heat, stepping
from experiments.errors import QUANTITIES, quantities
from experiments.heat import buffers_page
from experiments.heat.buffers import make_buffer
from experiments.heat.page import render
from experiments.intervals import Ratio, holm
from experiments.runs import Part, Results, Run, digits, make, read
from experiments.stepping import page, problem, why_page
from experiments.stepping.arms import Arm
from experiments.stepping.compared import Compared
from experiments.stepping.correlations import MEASURES, correlations
from experiments.stepping.problem import EQUATIONS, burgers, solve
from mpidata.sampling.space import Space


def test_ratios_are_taken_seed_by_seed() -> None:
    others = [1.0, 10.0, 100.0, 3.0, 7.0]
    ours = [0.5 * spread * other for other, spread in zip(others, [1, 1.1, 0.9, 1.05, 1], strict=True)]
    better = Ratio.of(ours, others)
    assert better.middle == pytest.approx(0.5, rel=0.02)
    assert 0.4 < better.low < better.middle < better.high < 0.6 and better.distinguishable
    even = Ratio.of([1.0, 2.0, 0.5, 1.0, 1.1], [1.0] * 5)
    assert even.low < 1 < even.high and not even.distinguishable and "not distinguishable" in str(even)
    logs = np.log([0.8, 0.7, 1.1, 0.9, 0.6, 0.95])
    error = 2.5706 * logs.std(ddof=1) / np.sqrt(6)  # 97.5 % of Student's t with 5 degrees of freedom
    found = Ratio.of(np.exp(logs).tolist(), [1.0] * 6)
    assert np.log([found.low, found.high]) == pytest.approx([logs.mean() - error, logs.mean() + error], abs=1e-4)


def test_sign_flip_test_is_exact() -> None:
    logs = np.array([0.4, 0.1, -0.2, 0.3, 0.5])
    signs = np.array(list(itertools.product([-1, 1], repeat=5)))
    p = (abs(signs @ logs) >= abs(logs.sum()) - 1e-12).mean()
    assert Ratio.of(np.exp(logs).tolist(), [1.0] * 5).p == pytest.approx(p)
    assert Ratio.of([2.0] * 5, [1.0] * 5).p == pytest.approx(2 / 32)
    many = Ratio.of(np.exp(np.random.default_rng(0).normal(0.3, 0.3, 20)).tolist(), [1.0] * 20)
    assert many.p < 0.01
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06]) and holm([0.9, 0.8]) == [1.0, 1.0]


def test_quantities_summarise_the_errors() -> None:
    found = quantities(np.arange(1.0, 101.0)[::-1])
    assert list(found) == list(QUANTITIES) and found["worst5"] == pytest.approx(98.0)
    assert found["mean"] == found["p50"] == 50.5 and found["max"] == 100.0 and found["p99"] == pytest.approx(99.01)


def test_runs_are_made_once_and_the_remaining_ones_later(tmp_path: Path) -> None:
    made: list[str] = []

    def run(name: str, folder: Path, results: Results) -> dict[str, Any]:
        assert folder.is_dir() and list(results) == [one for one in "abcd" if one < name]
        made.append(name)
        if name == "c" and made.count("c") == 1:
            raise RuntimeError("no")
        return {"name": name}

    part = Part("x", [Run(name, partial(run, name)) for name in "abcd"], lambda results, output: None)
    assert not make(part, tmp_path, 0.0) and made == ["a"]
    with pytest.raises(RuntimeError, match="no"):
        make(part, tmp_path, 10.0)
    assert made == ["a", "b", "c"] and read(part, tmp_path) == {"a": {"name": "a"}, "b": {"name": "b"}}
    assert make(part, tmp_path, 10.0) and made[3:] == ["c", "d"]
    assert [path.name for path in tmp_path.iterdir()] == ["x.jsonl"]
    assert len((tmp_path / "x.jsonl").read_text().splitlines()) == 4


def test_runs_are_made_concurrently_after_the_run_they_need(tmp_path: Path) -> None:
    both = threading.Barrier(2, timeout=20)

    def run(name: str, folder: Path, results: Results) -> dict[str, Any]:
        assert name == "production" or "production" in results
        if name in "ab":
            both.wait()
        return {"name": name}

    runs = [Run(name, partial(run, name), needed=name == "production") for name in ("production", "b", "a", "c")]
    assert make(Part("x", runs, lambda results, output: None), tmp_path, 10.0, at_once=2)
    assert [json.loads(line)["run"] for line in (tmp_path / "x.jsonl").open()] == ["production", "b", "a", "c"]


def test_results_are_rounded_to_four_digits() -> None:
    assert digits({"a": 0.123456, "b": [1, 2.0], "c": {"d": 123456.7}}) == {
        "a": 0.1235,
        "b": [1, 2.0],
        "c": {"d": 123500.0},
    }


def test_heat_experiment_produces_its_files_before_all_arms_and_seeds() -> None:
    names = [run.name for run in heat.part(False).runs]
    assert len(names) == 26 and names[0] == "production" and "offline, few 4" in names


def result(scale: float, steps: int, produced: float = 0.0) -> dict[str, Any]:
    marks = [{"steps": n, "seconds": n / 10, **dict.fromkeys(QUANTITIES, scale / n)} for n in (100, steps)]
    return {"marks": marks} | ({"produced_s": produced} if produced else {})


def test_the_page_compares_at_equal_steps_and_at_equal_time(tmp_path: Path) -> None:
    results = {}
    for seed in range(2):
        results[f"reservoir {seed}"] = result(1000.0 + seed, 400)
        results[f"fifo {seed}"] = result(2000.0 + 2 * seed, 100)
        results[f"offline, all {seed}"] = result(1000.0 + seed, 400, 30.0)
    render(["fifo", "reservoir", "offline, all"], range(2), 100, results, tmp_path)
    text = (tmp_path / "heat.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| fifo")]
    assert rows[0].startswith("| fifo | 20 [2.00 (2.00 to 2.00)]") and rows[1] == "| fifo | – | – | – | – | – |"
    offline = [line for line in text.splitlines() if line.startswith("| offline, all")]
    assert "[4.00 (4.00 to 4.00)]" in offline[2]  # started 30 s later, it has only the first mark
    assert "[1.00 (1.00 to 1.00, not distinguishable)]" in offline[3]
    assert (tmp_path / "heat.png").read_bytes().startswith(b"\x89PNG")


def test_single_simulation_equals_that_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(heat.__file__).parent))
    import problem

    parameters, fields = problem.held_out(3, 50)
    *_, (time, last) = problem.simulate(*parameters[1], 0.0)
    assert time == pytest.approx(0.5) and np.allclose(last["temperature"], fields[1, -1], atol=1e-3)
    # After a long time, sides of one temperature give everything that temperature.
    even = np.array([[0.1, 500, 200, 200, 200, 200]])
    *_, end = problem.solve(even)
    assert abs(end - 200).max() < 500 * np.exp(-2 * np.pi**2 * 0.1 * 0.5) * (16 / np.pi**2)


def test_stepping_experiment_uses_separate_seeds_for_tuning_and_confirmation() -> None:
    tuned, confirmed, watched = (part(False) for part in (stepping.tuning, stepping.confirmation, stepping.why))
    seeds = [{run.name.split()[-1] for run in part.runs} for part in (tuned, confirmed, watched)]
    assert [len(part) for part in seeds] == [5, 20, 5] and len(set.union(*seeds)) == 30
    assert len({run.name for run in confirmed.runs}) == len(confirmed.runs) == 20 * 3 * 6
    names = [run.name for run in confirmed.runs]
    assert names[:2] == ["burgers uniform 100", "burgers sobol 100"] and "power" not in "".join(names[:240])
    assert names[240:242] == ["kuramoto-sivashinsky power 100", "kuramoto-sivashinsky breed 100"]


def stepped(scale: float, worst: float) -> dict[str, Any]:
    errors = dict.fromkeys(QUANTITIES, scale) | {"worst5": worst}
    watched = {"ages": [3.0] * 4, "trained": [[1] * 10] * 4, "correlations": dict.fromkeys(MEASURES, 0.5)}
    more = {"steps": 100, "drawn": [[1] * 10] * 4, "sampler_s": 0.1, "training_s": 10.0}
    return errors | {"last": dict(errors)} | more | watched


def test_arms_are_compared_by_their_common_seeds(tmp_path: Path) -> None:
    results = {}
    for seed, (arm, scale) in itertools.product(range(3), (("uniform", 1.0), ("sobol", 0.5), ("power", 2.0))):
        if (arm, seed) != ("power", 2):
            uneven = 1.5 ** ((arm != "uniform") * (seed * 2 - 1))
            results[f"burgers {arm} {seed}"] = stepped(scale * 3**seed, uneven)
    arms = ["uniform", "sobol", "power", "breed"]  # breed has no results, and the other equation has fewer arms
    results |= {f"gray-scott {arm} {seed}": stepped(1.0, 2.0**seed) for arm in arms[:2] for seed in (1, 2)}
    page.render(Compared("samplers", ["burgers", "gray-scott"], arms, range(3), 400), results, tmp_path)
    text = (tmp_path / "samplers.md").read_text()
    assert "geometric mean over 2 seeds" in text and "0.866 [0.50 (0.50 to 0.50)]" in text
    assert "| sobol | the Gray-Scott system | 1.00" in text and "| power | the Gray" not in text and "breed" not in text
    assert "The 12 runs took 0.0 hours of CPU time" in text
    assert "power: 0.10 s (1.0 %)" in text and "| sobol | Burgers' equation | 1.00" in text
    why_page.render(Compared("why", ["burgers"], arms, range(3), 400), results, tmp_path)
    text = (tmp_path / "why.md").read_text()
    assert "| power | 0.20, 0.20, 0.20, 0.20 | 0.20, 0.20, 0.20, 0.20 | 3, 3, 3, 3 |" in text
    for name in ("samplers", "why"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_all_arms_begin_with_the_same_simulations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    space = {"pace": {"value": 0.003}, "a": [-1, 1], "b": [0, 2]}
    tables = {}
    for sampler, weighted in itertools.product(("uniform", "sobol", "breed", "power", "adaptive"), (False, True)):
        if weighted and sampler != "adaptive":
            continue
        keys = {"start": 0} if sampler == "adaptive" else {}
        described = {"sampler": sampler, "keys": keys, "weighted": weighted, "times": str(tmp_path / "times")}
        monkeypatch.setenv("EXPERIMENT_ARM", json.dumps(described))
        arm = Arm(space, 3)
        table = np.concatenate([arm.sample(3)[0] for _ in range(17)])
        known = {
            "mean": table[:, 1] + 2,
            "excess": table[:, 1] + 1,
            "difficulty": 2 * table[:, 1],
            "last": table[:, 1] + 2,
        }
        arm.observe(np.arange(51), table, known)
        rows, _, _, weights = arm.sample(40)
        tables[sampler, weighted] = np.column_stack([np.concatenate([table, rows]), [*np.ones(51), *weights]])
        assert float((tmp_path / "times").read_text()) >= 0
    first = tables["uniform", False]
    for (_, weighted), table in tables.items():
        assert (table[:50] == first[:50]).all() and (table[:, 0] == 0.003).all() and (abs(table[:, 2] - 1) <= 1).all()
        assert ((table[51:, 3] == 1) | weighted).all()
    weighted = tables["adaptive", True][51:, [1, 3]]
    assert np.corrcoef(weighted.T)[0, 1] < -0.8  # weights are lower where more are drawn
    assert tables["adaptive", False][51:, 1].mean() > first[51:, 1].mean()


@pytest.mark.parametrize(
    "policy", ["random", "most drawn", "oldest drawn", "least drawn first", "by simulation", "firo"]
)
def test_buffers_keep_their_budget_and_lose_no_undrawn_sample(policy: str) -> None:
    buffer = make_buffer(policy, 0.25, 4, np.arange(400) // 20, np.random.default_rng(0))
    drawn, steps = 0, 0
    for sample in range(400):
        buffer.add(sample)
        while (steps + 1) * 8 <= 4 * (sample + 1) and buffer.ready(8):
            batch, steps = buffer.draw(8), steps + 1
            assert len(set(batch.tolist())) == 8 and batch.max() <= sample
            drawn += 8
        assert not buffer.full()
    buffer.end()
    while (steps + 1) * 8 <= 1600 and buffer.ready(8):
        steps, drawn = steps + 1, drawn + len(buffer.draw(8))
    assert buffer.draws.sum() == drawn <= 1600 and (buffer.draws[:250] > 0).all()
    if policy == "firo":
        assert buffer.draws.max() == 4 and drawn > 1560
    else:
        assert drawn == 1600


def test_the_page_of_buffers_shows_how_often_samples_were_drawn(tmp_path: Path) -> None:
    results = {f"offline {seed}": result(1.0, 400) for seed in range(2)}
    results |= {f"all kept {seed}": result(2.0, 400) | {"draws": [1, 0, 3]} for seed in range(2)}
    buffers_page.render(["offline", "all kept"], range(2), 100, results, tmp_path)
    text = (tmp_path / "buffers.md").read_text()
    assert "[0.50 (0.50 to 0.50)]" in text and "| all kept | 0.25 | 0.00 | 0.75 | 0.00" in text


class Batches(list):
    """A stream without a job, with the parameters in the order of its job file."""

    parameter_names = ("pace", *reversed(EQUATIONS["burgers"].space))

    def losses(self, batch: dict[str, Any], losses: torch.Tensor) -> None:
        assert losses.shape == (len(batch["u"]),)


def test_surrogate_receives_the_parameters_of_its_equation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(Path(stepping.__file__).parent))
    monkeypatch.setitem(sys.modules, "problem", problem)
    import online
    import surrogate

    told: list[torch.Tensor] = []
    step = surrogate.Training.step
    monkeypatch.setattr(surrogate.Training, "step", lambda self, p, *more: told.append(p) or step(self, p, *more))
    parameters = torch.arange(24.0, dtype=torch.float64).reshape(4, 6) % 3
    parameters[:, 5] = torch.tensor([-1.4, -1.0, -0.5, -0.1], dtype=torch.float64)
    batch = {"parameters": parameters, "u": torch.zeros(4, 3, 1, 128), "simulation": torch.tensor([5, 2, 2, 0])}
    batch["weight"] = torch.ones(4)
    monkeypatch.setenv("EXPERIMENT_ARM", '{"sampler": "uniform"}')
    monkeypatch.setattr(mpidata, "MPIStreamDataset", lambda batch_size: Batches([batch]))
    online.main("burgers", 0, 1, 8, tmp_path / "result.json", watched=True)
    assert told[0].tolist() == parameters[:, [5, 4, 3, 2, 1]].tolist()
    found = json.loads((tmp_path / "result.json").read_text())
    assert set(found["errors"]) == {"0", "2", "5"} and found["ages"] == [5 - 9 / 4] and np.sum(found["trained"]) == 4
    rows = [f"{i},1,{loss},0,0,{loss},0,{loss}" for i, loss in ((0, 1.0), (2, 3.0), (5, 2.0), (7, 9.0))]
    (tmp_path / "losses.csv").write_text(
        "simulation,count,mean,max,last,excess,not_finite,difficulty\n" + "\n".join(rows)
    )
    assert correlations(tmp_path / "losses.csv", {"0": 0.1, "2": 0.3, "5": 0.2})["difficulty"] == pytest.approx(1.0)


def test_burgers_solution_matches_the_cole_hopf_transform() -> None:
    viscosity, amplitude = 0.1, 1.0
    *_, u = solve(EQUATIONS["burgers"], np.array([[np.log10(viscosity), 0.0, amplitude, 0.0, 0.0]]))
    # u = -2 nu phi_x / phi, and phi is the convolution of its start with the kernel of the heat equation.
    fine = 2 * np.pi * np.arange(4096) / 4096
    waves = np.fft.rfftfreq(4096, 1 / 4096)
    phi = np.fft.rfft(np.exp(-amplitude * (1 - np.cos(fine)) / (2 * viscosity))) * np.exp(-viscosity * 2.0 * waves**2)
    exact = -2 * viscosity * np.fft.irfft(1j * waves * phi) / np.fft.irfft(phi)
    assert abs(u[0, 0] - exact[::32]).max() < 1e-4
    steps = list(burgers(0.0, log_viscosity=-1.0, mean=0.0, first=1.0, second=0.0, phase=0.0))
    assert len(steps) == 41 and steps[-1][0] == pytest.approx(2.0) and np.allclose(steps[-1][1]["u"], u[0], atol=1e-6)


def test_kuramoto_sivashinsky_growth_matches_its_unstable_waves() -> None:
    length = 2 * np.pi * np.sqrt(2)  # wave number 1 grows most, by exp(t / 4)
    states = list(solve(EQUATIONS["kuramoto-sivashinsky"], np.array([[length, 1e-4, 0.0, 0.0, 0.0]])))
    assert abs(states[-1]).max() == pytest.approx(1e-4 * np.exp(10.0 / 4), rel=0.01)


def test_gray_scott_solution_matches_smaller_steps() -> None:
    system = EQUATIONS["gray-scott"]
    nothing = np.array([[0.04, 0.06, 0.0, 5.0, 1.0]])
    *_, still = solve(system, nothing)
    assert still.shape == (1, 2, 128) and np.allclose(still, [[[1.0], [0.0]]], atol=1e-6)
    parameters = np.random.default_rng(1).uniform(*np.array(list(system.space.values())).T, (8, 5))
    rough, fine = (np.stack(list(solve(one, parameters))) for one in (system, dataclasses.replace(system, substeps=60)))
    assert abs(rough - fine).max() < 0.01 and fine[-1, :, 1].max() > 0.1  # some simulations have pulses
    assert abs(fine[1] - fine[0]).max() > 0.05


@pytest.fixture
def stepping_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(stepping.__file__).parent))
    monkeypatch.setitem(sys.modules, "problem", problem)


class Published(dict):  # type: ignore[type-arg]
    version = 1


def test_committee_chooses_spread_points_of_large_disagreement(stepping_folder: None) -> None:
    from committee import Committee
    from surrogate import network

    names = list(EQUATIONS["burgers"].space)
    committee = Committee(Space([*EQUATIONS["burgers"].space.values()]), 1, "burgers", uniform=0.5)
    assert set(committee.sample(20)[1]) == {"uniform"}
    model = network(EQUATIONS["burgers"])
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    for version, bias in ((3, 0.0), (4, 1.0), (4, 9.0)):
        torch.nn.init.constant_(list(model.parameters())[-1], bias)
        published = Published({name: tensor.numpy() for name, tensor in model.state_dict().items()})
        published.version = version
        committee.observe(published)
    # One member stays fixed, the other moves by 0.1 per step.
    disagreement = committee._disagreement(np.full((3, len(names)), 0.5))
    assert disagreement == pytest.approx([sum((0.1 * n) ** 2 for n in range(1, 21))] * 3, rel=1e-4)
    committee._disagreement = lambda pool: (pool[:, 0] > 0.8).astype(float)  # type: ignore[method-assign]
    rows, rules, _ = committee.sample(64)
    chosen = committee._space.unit(rows[[rule == "committee" for rule in rules]])
    assert 20 < len(chosen) < 44 and (chosen[:, 0] > 0.8).all()
    nearest = np.sort(np.linalg.norm(chosen[:16, None] - chosen[None, :16], axis=2), axis=1)[:, 1]
    assert nearest.min() > 0.1


def test_diffusion_sampler_favours_difficult_parameters(stepping_folder: None) -> None:
    from diffusion import Diffusion

    space = Space([(0.0, 2.0), (-1.0, 1.0)])
    sampler = Diffusion(space, 1)
    assert set(sampler.sample(5)[1]) == {"uniform"}
    rows = space.scale(np.random.default_rng(0).random((200, 2)))
    for _ in range(20):
        sampler.observe(np.arange(200), rows, {"difficulty": rows[:, 0] + 0.1 * rows[:, 1]})
    drawn, rules, parents = sampler.sample(400)
    made = np.array(rules) == "diffusion"
    assert 0.6 < made.mean() < 0.8 and set(parents) == {-1}
    assert drawn[made, 0].mean() > 1.3 and 0.8 < drawn[~made, 0].mean() < 1.2 and abs(drawn[made, 1].mean()) < 0.3
    assert (drawn >= [0, -1]).all() and (drawn <= [2, 1]).all()
