"""A user's own sampler, which receives the losses, moves the simulations of a job to where these are large."""

import json

import numpy as np
import pytest
from jobs import JobFolder, python, read_rows

import mpidata

STEPS = {"STEPS": "2", "SLEEP_S": "0.06"}


def test_sampler_moves_simulations_to_large_losses(folder: JobFolder) -> None:
    folder.variables = STEPS
    folder.job(
        trainers={"program": python("trainers/learning/loss_is_alpha.py")},
        solvers={"function": "functions.steps:simulate", "groups": 2},
        parameters={"count": 80, "sampler": "samplers.nearby:Nearby", "space": {"alpha": [0.0, 1.0]}},
        validation={"count": 2},
    )
    result = folder.run()
    assert result.status == 0 and result.run is not None, result.logs()
    assert result.summary["simulations"]["complete"] == 82
    rows = read_rows(result.run / "parameters.csv")
    assert sorted(rows) == list(range(82)) and rows[80]["rule"] == rows[81]["rule"] == "validation"
    seen = dict(np.load(folder.path / "seen.npy").tolist())
    assert seen == {float(number): float(rows[number]["alpha"]) for number in range(80)}
    last = [rows[number] for number in range(60, 80)]
    assert all(row["rule"] == "near" for row in last) and sum(float(row["alpha"]) for row in last) / 20 > 0.9


@pytest.mark.parametrize("window", [1, 2])
def test_samples_have_the_weights_of_their_simulations(folder: JobFolder, window: int) -> None:
    folder.variables = {"STEPS": "4", "SLEEP_S": "0.02"}
    record = str(folder.path / "record")
    folder.job(
        trainers={"program": python("trainers/learning/weights.py")},
        solvers={"function": "functions.steps:simulate", "groups": 2},
        parameters={"count": 120, "sampler": "adaptive", "weights": True, "space": {"alpha": [0.1, 1.0]}}
        | {"adaptive": {"start": 20}},
        samples={"window": window},
        validation={"count": 2},
        **({"record": {"path": record}} if window == 1 else {}),
    )
    result = folder.run()
    assert result.status == 0 and result.run is not None, result.logs()
    rows = read_rows(result.run / "parameters.csv")
    seen = json.loads((folder.path / "seen.json").read_text())
    assert seen == {str(number): pytest.approx(float(rows[number]["weight"]), rel=1e-6) for number in range(120)}
    assert rows[120]["weight"] == rows[121]["weight"] == "1.0" and rows[0]["weight"] == "1.0"
    of_large = [
        float(row["weight"]) for row in rows.values() if row["rule"] == "adaptive" and float(row["alpha"]) > 0.9
    ]
    assert of_large and max(of_large) < 1
    if window == 1:
        recorded = mpidata.RecordedDataset(record)
        assert recorded.parameter_names == ("alpha",) and recorded[0]["parameters"].shape == (1,)
        samples = [recorded[i] for i in range(len(recorded))]
        assert {str(int(sample["simulation"])): sample["weight"].item() for sample in samples} == seen


@pytest.mark.full
@pytest.mark.parametrize("sampler", ["adaptive", "breed", "power"])
def test_resume_keeps_the_parameters_drawn_before(folder: JobFolder, sampler: str) -> None:
    folder.variables = STEPS
    folder.job(
        trainers={"program": python("trainers/learning/dies_after_checkpoint.py")},
        solvers={"function": "functions.steps:simulate", "groups": 2},
        parameters={"count": 120, "sampler": sampler, "space": {"alpha": [0.0, 1.0]}},
    )
    first = folder.run()
    assert first.status == 1 and first.run is not None, first.logs()
    drawn = (first.run / "parameters.csv").read_text()
    result = folder.resume(first.run)
    assert result.status == 0, result.logs()
    assert result.summary["simulations"]["complete"] == 120
    rows = read_rows(first.run / "parameters.csv")
    assert (first.run / "parameters.csv").read_text().startswith(drawn) and sorted(rows) == list(range(120))
    assert len({row["alpha"] for row in rows.values()}) == 120
    assert 40 < drawn.count("\n") < 110
    for line in (folder.path / "seen.txt").read_text().splitlines():
        simulation, alpha = line.split()
        assert rows[int(simulation)]["alpha"] == alpha
    rules = [row["rule"] for row in rows.values()]
    assert {"breed": "bred"}.get(sampler, sampler) in rules[60:]
