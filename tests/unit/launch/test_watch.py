"""When `mpidata run` waits no longer for a job."""

import os
from pathlib import Path

import pytest
from ended_run import EndedRun

from mpidata.launch.watching.ranks import LocalRanks
from mpidata.launch.watching.signals import Signals
from mpidata.launch.watching.watch import Watch


@pytest.mark.parametrize("noted", [True, False])
@pytest.mark.parametrize("joined", [True, False])
def test_a_rank_that_dies_while_it_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joined: bool, noted: bool
) -> None:
    """Its death ends the job only where it came before all had joined."""
    case = EndedRun(tmp_path)

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
