"""Trainers that draw nothing while others wait."""

from collections.abc import Callable
from typing import Any

import pytest

from mpidata.native.event import Error, Status

MakeJob = Callable[..., Any]


def draws(batches: int) -> list[int]:
    return [5, 0, 0, batches, 0, 100, 0, 0]


def tell(make_job: MakeJob, asks_s: float = 15.1, batches: int = 4, idle: bool = True, **plan: Any) -> Any:
    """Run a job whose trainer 0 waits for its next batch; 1 draws, and 2 is idle."""
    job = make_job(trainers=3, simulations=2, **plan)
    job.before["dispatch"] = lambda group, simulation: False
    for tick in range(3):
        job.event(Status, 2, after=0.2 * tick + 0.1, idle=idle, statistics=draws(0))
        job.event(Status, 1, after=0.2 * tick + 0.1, statistics=draws(4))
        job.event(Status, 0, after=0.2 * tick + 0.2, asks_us=int(1e6 * asks_s), statistics=draws(batches))
    job.event(Error, text="enough", after=1.0)
    assert job.run() == 1
    return job


def test_idle_trainer_hands_over_its_samples_once(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = tell(make_job)
    assert job.called("hands_over") == [(2,)]
    assert [event["trainer"] for event in job.events("hand_over")] == [2]
    assert capsys.readouterr().err == "mpidata: Trainer 2 draws nothing: its samples go to the trainers that draw.\n"


@pytest.mark.parametrize("how", [{"asks_s": 14.9}, {"batches": 0}, {"idle": False}])
def test_trainer_does_not_hand_over_samples_too_early_or_while_it_draws(make_job: MakeJob, how: dict[str, Any]) -> None:
    job = tell(make_job, **how)
    assert job.called("hands_over") == job.events("hand_over") == []


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        ({"checkpoint_every_s": 300.0}, "the job has 'checkpoint', to which each trainer writes its part"),
        ({"samples_window": 2}, "the job has 'samples.window'"),
        ({"journal": 1}, "the job has 'journal'"),
    ],
)
def test_impossible_hand_over_is_reported_with_its_reason(
    make_job: MakeJob, capsys: pytest.CaptureFixture[str], plan: dict[str, Any], why: str
) -> None:
    job = tell(make_job, **plan)
    assert job.called("hands_over") == []
    assert [(event["trainer"], event["reason"]) for event in job.events("no_hand_over")] == [(2, why)]
    assert f"Its samples cannot go to them, because {why}.\n" in capsys.readouterr().err
