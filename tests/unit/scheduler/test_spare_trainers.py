"""Spare trainers: the orders sent when trainers die, and when another number of trainers is requested."""

import json
from pathlib import Path
from typing import Any

import pytest
from fake_library import make_plan

from mpidata.errors import MpidataError
from mpidata.loading.figures import RETIRES
from mpidata.native.constants import JOINS, TRAINS
from mpidata.native.event import Died, Goodbye, Report
from mpidata.scheduler.deaths.spare_trainers import SpareTrainers
from mpidata.scheduler.figures.summary import Figures


class Spares:
    """Two trainers and two spares, of which the last two wait."""

    def __init__(self, run: Path, **plan: Any) -> None:
        self.orders: list[tuple[int, int]] = []
        self.events: list[tuple[str, int]] = []
        self.figures = Figures(4, 1)
        self.living = [0, 1, 2, 3]
        planned = {"trainers": 4, "trainer_spares": 2, "world": 9, "trainers_at_least": 1} | plan
        self.spares = SpareTrainers(
            make_plan(run=run, **planned), lambda *order: self.orders.append(order), self.note, self.figures
        )

    def note(self, event: str, trainer: int) -> None:
        self.events.append((event, trainer))

    def die(self, trainer: int) -> None:
        self.living.remove(trainer)
        self.spares.died(trainer, self.living)


def test_a_spare_is_called_when_a_trainer_dies(tmp_path: Path) -> None:
    job = Spares(tmp_path)
    assert job.spares.training(job.living) == [0, 1] and job.spares.waits(3)
    job.die(1)
    assert job.orders == [(1, 2)] and job.spares.training(job.living) == [0]
    assert job.spares.reported(2, ["loss", TRAINS]) == 1
    assert (
        job.spares.training(job.living) == [0, 2]
        and job.figures.joined_trainers == [2]
        and job.events == [("trainer_joined", 2)]
    )
    assert job.spares.reported(2, [TRAINS]) == 0


def test_joining_spare_has_a_share_of_the_stream_before_it_counts_as_joined(tmp_path: Path) -> None:
    job = Spares(tmp_path)
    assert not job.spares.joins(0, [JOINS]) and not job.spares.joins(2, ["loss"])
    assert job.spares.joins(2, [JOINS]) and not job.spares.joins(2, [JOINS])
    assert job.spares.training(job.living) == [0, 1, 2] and job.figures.joined_trainers == []
    assert job.spares.reported(2, [TRAINS]) == 1 and job.figures.joined_trainers == [2]


def test_death_of_a_waiting_spare_calls_no_other_spare(tmp_path: Path) -> None:
    job = Spares(tmp_path)
    job.die(3)
    assert job.orders == []
    job.die(2)
    job.die(0)
    assert job.orders == [] and job.spares.training(job.living) == [1]


def test_next_spare_is_called_if_one_dies_before_it_trains(tmp_path: Path) -> None:
    job = Spares(tmp_path)
    job.die(1)
    job.die(2)
    assert job.orders == [(1, 2), (2, 2)]


def test_release_orders_waiting_spares_to_leave_only_once(tmp_path: Path) -> None:
    job = Spares(tmp_path)
    job.spares.release()
    job.spares.release()
    assert job.orders == [(1, 0)]


def test_scale_adds_and_retires_trainers(tmp_path: Path) -> None:
    job = Spares(tmp_path)
    assert job.spares.scale(3, job.living) == "3 trainers from the next step on, there were 2."
    job.spares.reported(2, [TRAINS])
    assert job.spares.scale(1, job.living) == "1 trainer from the next step on, there were 3."
    assert job.spares.reported(2, [RETIRES]) == job.spares.reported(1, [RETIRES]) == -1
    assert job.orders == [(1, 3), (2, 1)] and job.spares.training(job.living) == [0]
    assert job.events[-2:] == [("trainer_retired", 2), ("trainer_retired", 1)]
    assert job.figures.retired_trainers == [2, 1]
    job.die(0)  # otherwise the job would end
    assert job.orders[-1] == (3, 1)


@pytest.mark.parametrize(
    ("plan", "count", "said"),
    [
        ({"trainers_at_least": 0}, 3, "no 'trainers.elastic'"),
        ({"trainer_spares": 0}, 3, "start the job with 'trainers.spares'"),
        ({"trainers_at_least": 2}, 1, "at least 2 must train"),
        ({}, 5, "5 trainers would be 3 more, but the job has 2 to spare"),
    ],
)
def test_impossible_numbers_of_trainers_are_refused(
    tmp_path: Path, plan: dict[str, int], count: int, said: str
) -> None:
    job = Spares(tmp_path, **plan)
    with pytest.raises(MpidataError, match=said):
        job.spares.scale(count, job.living)
    assert job.orders == []


def test_spare_replaces_a_dead_trainer_in_a_job(make_job: Any) -> None:
    job = make_job(
        trainers=4, trainer_spares=2, trainers_at_least=1, groups=0, simulations=0, loaders=1, fault_tolerance="ulfm"
    )
    job.event(Died, 1, after=2.0, of_solver=False, rank=2, rank_in_group=0)
    job.event(Report, 2, after=3.0, values=((TRAINS, 5, 1.0),))
    job.event(Goodbye, 0, after=50.0)
    job.event(Goodbye, 2, after=50.0)
    job.event(Goodbye, 3, after=60.0)  # a waiting spare, which is ordered to leave
    assert job.run() == 0 and job.summary["status"] == "complete"
    assert (job.summary["lost_trainers"], job.summary["joined_trainers"]) == ([1], [2])
    progress = json.loads((job.plan.run / "progress.json").read_text())
    assert progress["trainers"] == ["trains", "dead", "trains", "spare"]
    assert job.called("trainers") == [(1, 2), (2, 0)]
