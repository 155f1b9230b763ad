"""The counts from which the scheduler of a resumed run continues."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_library import make_plan

from mpidata.errors import MpidataError
from mpidata.scheduler import restore as room
from mpidata.scheduler.deaths.lost_groups import Cause, Losses
from mpidata.scheduler.figures.summary import Figures
from mpidata.scheduler.simulations import Simulations


@pytest.mark.parametrize(
    "told",
    [{}, {"lost_groups": 3, "retries": [{"simulation": 0}], "set_aside": [], "run_again": 6, "lost_trainers": [2, 0]}],
)
def test_figures_resume_from_the_checkpoint_and_losses_from_the_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: dict[str, Any]
) -> None:
    plan = make_plan(run=tmp_path, simulations=5, validation=0, checkpoint=1, attempt=2)
    losses = Losses(plan)
    losses.groups = 2
    losses.retry(1, 1, 0, Cause("signal", "was killed by SIGSEGV", signal=11))
    before = Figures(1, 20)
    before.run_again, before.earlier = 4, {"lost_trainers": [2]}
    before.report("loss", 4.0)
    before.status(0, [30, 0, 0, 3, 5, 20, 1500, 5])
    state = json.loads(json.dumps(room.state_of(Simulations(5, 1), losses, before, 10.0)))
    monkeypatch.setattr(room, "read_scheduler", lambda folder: state)
    monkeypatch.setattr(room, "received", lambda folder: np.array([4, -1, -1, -1, -1]))
    monkeypatch.setattr(room, "read_losses", lambda events: told)
    simulations, restored, figures = Simulations(5, 1), Losses(plan), Figures(1, 20)
    assert room.restore(plan, simulations, restored, figures) == {"checkpoint": 1, "attempt": 2, "complete": 1}
    assert restored.groups == (3 if told else 2) and len(restored.retries) == 1
    assert figures.run_again == (6 if told else 4) and figures.lost_trainers == []
    figures.lost_trainers.append(0)
    assert figures.changes() == {"lost_trainers": [2, 0, 0] if told else [2, 0]}
    assert not figures.are_known
    figures.status(0, [30, 0, 0, 3, 5, 20, 1500, 5])  # as it was restored
    assert figures.are_known and figures.progress(simulations, 3.0)["samples"]["per_second"] == 0
    summary = figures.summary(
        tmp_path, {"status": "complete", "error": None, "reason": None}, simulations, restored, seconds=2.5
    )
    assert (summary["seconds"], summary["bytes"]) == (12.5, 1500)
    assert figures.progress(simulations, 3.0)["seconds"] == 13.0 and figures.first == {"loss": 4.0}
    figures.status(0, [36, 0, 0, 3, 5, 20, 1500, 5])
    assert figures.progress(simulations, 4.0)["samples"]["per_second"] == 1.5


@pytest.mark.parametrize("damage", [{"run_again": "2"}, {"lost_trainers": 1}, {"joined_trainers": ["1"]}])
def test_a_damaged_state_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: dict[str, Any]) -> None:
    plan = make_plan(run=tmp_path, simulations=5, validation=0, checkpoint=1)
    state = room.state_of(Simulations(5, 1), Losses(plan), Figures(1, 20), 10.0) | damage
    monkeypatch.setattr(room, "read_scheduler", lambda folder: state)
    monkeypatch.setattr(room, "received", lambda folder: np.array([-1] * 5))
    with pytest.raises(MpidataError, match="is damaged"):
        room.restore(plan, Simulations(5, 1), Losses(plan), Figures(1, 20))
