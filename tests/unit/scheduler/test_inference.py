"""Inference ranks: which are announced to the solvers, what replaces a lost one, and when they leave."""

from collections.abc import Callable
from typing import Any

import pytest

from mpidata.native.event import Error, Stop

Make = Callable[..., Any]


def test_inference_ranks_answer_once_ready_and_leave_after_the_solvers(make_job: Make) -> None:
    job = make_job(inference=2)
    assert job.run() == 0
    assert job.called("answers") == [(0,), (1,)] and job.called("release_inference") == [(0,), (1,)]
    assert job.summary["inference"] == {"joined": 2, "lost": 0} and job.has_left == [True]
    names = [call[0] for call in job.calls]
    assert names.index("end_of_stream") < names.index("release_inference") < names.index("all_gone")
    assert [event["inference"] for event in job.events("inference_left")] == [0, 1]


def test_inference_ranks_stay_while_a_solver_may_wait_for_an_answer(make_job: Make) -> None:
    job = make_job(inference=1)
    job.before["dispatch"] = lambda group, simulation: False  # a long simulation
    job.before["stop"] = lambda: job.goodbye(0) or job.finalize(0, after=3.0)
    job.event(Stop, 0, text="enough")
    begun = job.now
    assert job.run() == 0 and job.summary["status"] == "stopped"
    assert job.called("release_inference") == [(0,)] and job.now - begun >= 3.0


def test_spare_replaces_a_lost_inference_rank(make_job: Make) -> None:
    job = make_job(inference=1, inference_spares=1, fault_tolerance="ulfm")
    job.before["dispatch"] = lambda group, simulation: job.now > 1000 or job.lose_loader(0, kind="inference")
    assert job.run() == 0, job.summary
    assert job.called("lose_inference") == [(0, "")] and job.called("answers") == [(0,), (1,)]
    (lost,) = job.events("inference_lost")
    assert (lost["inference"], lost["cause"]) == (0, "signal")
    assert job.summary["inference"] == {"joined": 2, "lost": 1}


def test_job_fails_if_the_last_inference_rank_is_lost(make_job: Make) -> None:
    job = make_job(inference=1, fault_tolerance="ulfm")
    job.before["dispatch"] = lambda group, simulation: job.lose_loader(0, kind="inference") or False
    assert job.run() == 1
    assert "No inference rank is left: the last one, inference rank 0, was killed by SIGKILL" in job.summary["error"]
    assert "inference-0.log" in job.summary["error"]


def test_job_fails_if_a_new_inference_rank_is_not_ready_in_time(make_job: Make) -> None:
    """Its spawn never returns, or is repeated."""
    times = {"inference_timeout_s": 5.0, "inference_start_timeout_s": 40.0}
    job = make_job(inference=1, fault_tolerance="ulfm", can_spawn=True, **times)
    job.before["dispatch"] = lambda group, simulation: job.lose_loader(0, kind="inference") or False
    job.before["spawn_inference"] = lambda number: False
    begun = job.now
    assert job.run() == 1 and 45 <= job.now - begun < 50
    assert "No inference rank was ready to answer the solvers for 45 s" in job.summary["error"]
    assert "Inference rank 1 has not become ready. Its output is in" in job.summary["error"]


def test_missing_inference_rank_does_not_fail_a_job_without_running_solvers(make_job: Make) -> None:
    times = {"inference_timeout_s": 5.0, "inference_start_timeout_s": 40.0}
    job = make_job(inference=1, fault_tolerance="ulfm", can_spawn=True, start="spawn", **times)
    job.before["spawn"] = lambda group, values: job.lose_loader(0, kind="inference") or False
    job.before["spawn_inference"] = lambda number: False
    job.event(Stop, 0, after=300.0, text="enough")
    assert job.run() in (0, 1000) and job.summary["status"] == "stopped", job.summary


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ({"signal": 11}, "that crashes. Inference rank 0, the first one, was killed by SIGSEGV; inference rank 7, the"),
        ({"signal": None, "exit": 3}, "that ends its rank. Inference rank 0, the first one, ended with exit status 3;"),
        (
            {"signal": None, "silent_s": 2.0, "silent_key": "inference.timeout_s"},
            "that never returns. Inference rank 0, the first one, was silent for 2 s, longer than inference.timeout_s",
        ),
    ],
)
def test_loss_of_eight_inference_ranks_in_a_row_reports_the_first_cause(
    make_job: Make, first: dict[str, Any], said: str
) -> None:
    job = make_job(can_spawn=True, inference=1, inference_spares=7, fault_tolerance="ulfm")
    lost = iter(range(8))

    def lose(group: int, simulation: int) -> bool:
        for number in lost:
            job.lose_loader(number, 0.1 * number, kind="inference", **(first if number == 0 else {}))
        return False

    job.before["dispatch"] = lose
    assert job.run() == 1
    assert "8 inference ranks in a row were lost" in job.summary["error"], job.summary["error"]
    assert f"inference.function, net:answer, {said}" in job.summary["error"], job.summary["error"]
    assert "inference-0.log" in job.summary["error"] and job.called("spawn_inference") == []


def test_error_of_the_inference_function_ends_the_job(make_job: Make) -> None:
    job = make_job(inference=1)
    job.before["answers"] = lambda number: job.event(
        Error, 0, of_inference=True, rank=3, text="inference.function: no."
    )
    assert job.run() == 1 and job.summary["error"] == "inference.function: no."
