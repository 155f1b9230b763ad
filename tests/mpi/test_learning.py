"""A sampler of the user's own, which is told of the losses, moves the simulations of a job to where these are large."""

import numpy as np
import pytest
from jobs import JobFolder, python, read_rows

STEPS = {"STEPS": "2", "SLEEP_S": "0.06"}


def test_simulations_go_where_the_loss_is_large(folder: JobFolder) -> None:
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


@pytest.mark.full
@pytest.mark.parametrize("sampler", ["adaptive", "breed", "power"])
def test_what_was_drawn_is_final_over_a_resume(folder: JobFolder, sampler: str) -> None:
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
    assert len({row["alpha"] for row in rows.values()}) == 120 and 40 < drawn.count("\n") < 110
    for line in (folder.path / "seen.txt").read_text().splitlines():
        simulation, alpha = line.split()
        assert rows[int(simulation)]["alpha"] == alpha
    rules = [row["rule"] for row in rows.values()]
    assert {"breed": "bred"}.get(sampler, sampler) in rules[60:]
