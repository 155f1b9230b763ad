"""When `mpidata run` stops waiting for a job."""

import json
import os

import pytest
from ended_run import EndedRun

from mpidata.launch.watching.ranks import LocalRanks
from mpidata.launch.watching.signals import Signals
from mpidata.launch.watching.watch import Watch
from mpidata.run import deadlines


@pytest.mark.parametrize("noted", [True, False])
@pytest.mark.parametrize("joined", [True, False])
def test_death_during_a_check_ends_the_job_only_before_all_ranks_joined(
    case: EndedRun, monkeypatch: pytest.MonkeyPatch, joined: bool, noted: bool
) -> None:
    """The death ends the job only if it came before all ranks had joined."""

    def look(ranks: LocalRanks) -> None:
        if joined:
            case.fault_tolerant()
        if noted:
            case.record(3, 0.0, exit=1)
        else:
            ranks.gone.add(3)

    monkeypatch.setattr(LocalRanks, "look", look)
    watch = Watch(case.attempt, os.getpid(), Signals())
    with watch:
        assert watch.is_due() is not joined


@pytest.mark.parametrize(("lost", "ends"), [([], True), ([0], False), ([1], True)])
def test_dead_trainer_ends_the_job_unless_the_others_continue(case: EndedRun, lost: list[int], ends: bool) -> None:
    now = 0.0
    case.fault_tolerant()
    with Watch(case.attempt, os.getpid(), Signals(), clock=lambda: now) as watch:
        assert not watch.is_due()
        case.record(1, 0, signal=9)
        assert not watch.is_due()
        now = 1.0
        case.run.progress.write_text(
            json.dumps({"trainers": ["dead" if one in lost else "trains" for one in range(2)]})
        )
        assert not watch.is_due()
        now = deadlines.GRACE_S + 0.5
        assert watch.is_due() == ends
        now = 500.0
        assert watch.is_due() == ends
