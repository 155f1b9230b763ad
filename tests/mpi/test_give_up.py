"""A simulation whose try has failed is run again, also by a group that has samples of the first try under way."""

import pytest
from jobs import JobFolder, python

COUNT, STEPS = 12, 12


@pytest.mark.parametrize(
    "groups, columns",
    [(2, 600), *(pytest.param(*sizes, marks=pytest.mark.full) for sizes in [(1, 600), (1, 60), (2, 60)])],
)
def test_tries_of_one_simulation_do_not_mix(folder: JobFolder, groups: int, columns: int) -> None:
    program = python("solvers/python/fails_first_try.py", columns, STEPS)
    folder.job(
        trainers={"program": python("trainers/distinct.py")},
        solvers={"groups": groups, "ranks_per_group": 2, "program": program},
        parameters={"count": COUNT, "space": {"alpha": [0.0, 1.0]}},
        fields={"u": {"dtype": "float32", "shape": [64, columns]}},
        buffer={"policy": "fifo", "capacity": 8},
    )
    result = folder.run()
    assert result.status == 0, result.logs()
    assert f"distinct {COUNT * STEPS}" in result.log("trainer")
    assert [entry["how"] for entry in result.summary["retries"]] == ["raised the first time"] * COUNT
    assert result.summary["simulations"] == {"requested": COUNT, "complete": COUNT, "failed": 0}
