"""When `mpidata run` waits no longer for a job of which ranks have died."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_library import make_plan

from mpidata.launch.watching.watch import Watch
from mpidata.run import deadlines
from mpidata.run.folder import RunFolder


def watch_of(run: Path, at_least: int) -> Watch:
    plan = make_plan(run=run, trainers=4, world=9, trainers_at_least=at_least)
    attempt: Any = SimpleNamespace(plan=plan, run=RunFolder(run))
    return Watch(attempt, os.getpid(), SimpleNamespace(), clock=lambda: 5.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("at_least", "deaths", "waits"),
    [(0, 0, True), (0, 1, False), (1, 3, True), (2, 2, True), (2, 3, False), (3, 1, True), (3, 2, False)],
)
def test_a_job_is_waited_for_while_enough_trainers_live(
    tmp_path: Path, at_least: int, deaths: int, waits: bool
) -> None:
    with watch_of(tmp_path, at_least) as watch:
        for trainer in range(deaths):
            path = RunFolder(tmp_path).rank_exit(1 + trainer)
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps({"rank": 1 + trainer, "exit": None, "signal": 9, "joined": True, "told": False}))
        watch._look_for_deaths(5.0)
        assert watch._end_by == (float("inf") if waits else 5.0 + deadlines.GRACE_S)
