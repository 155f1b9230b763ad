"""Healthy solvers are left alone, however long they rightly wait; those that hang are ended."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jobs import JobFolder, Result, python


def test_only_a_slow_step_after_the_first_counts_as_a_hang(folder: JobFolder) -> None:
    solvers = {"groups": 2, "function": "functions.timing.hangs:simulate", "timeout_s": 1, "retries": 0}
    trainers = {"program": python("trainers/drain.py", 4)}
    folder.job(trainers=trainers, solvers=solvers, parameters={"count": 2, "space": {"alpha": [0.0, 1.0]}})
    result = folder.run(timeout=60)
    assert result.status == 0, result.logs()
    assert result.summary["simulations"]["complete"] == 1
    [lost] = result.summary["set_aside"]
    assert (lost["simulation"], lost["cause"]) == (1, "silent")
    assert "longer than solvers.timeout_s allows" in lost["how"]


def run_paused(folder: JobFolder, after_s: float, **solvers: Any) -> Result:
    limits = {"ranks_per_group": 2, "in_flight": 1, "timeout_s": 4, "start_timeout_s": 4}
    folder.job(
        trainers={"program": python("trainers/timing/pauses.py", after_s)},
        solvers=limits | solvers,
        parameters={"count": 2, "space": {"alpha": [0.0, 1.0]}},
        fields={"u": {"dtype": "float32", "shape": [160, 160]}},  # too large to share messages
        buffer={"policy": "fifo", "capacity": 4},
    )
    result = folder.run(timeout=90)
    assert result.status == 0, result.logs()
    summary = result.summary
    assert (summary["status"], summary["lost_groups"], summary["retries"]) == ("complete", 0, []), summary
    assert "trained 80" in result.log("trainer")
    return result


def test_trainer_pause_longer_than_every_timeout_loses_no_group(
    folder: JobFolder, compiled: Callable[[str], Path]
) -> None:
    result = run_paused(folder, 8.5, program=[str(compiled("one_puts"))], groups=2)
    for solver in range(4):
        assert result.log("solver", solver) == "all done\n"


def test_ranks_that_only_wait_for_rank_0_are_not_treated_as_silent(folder: JobFolder) -> None:
    run_paused(folder, 0, function="functions.timing.pauses:simulate")
