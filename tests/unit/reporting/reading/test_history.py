"""The history that events give: bars, marks, and the seconds of the run."""

from pathlib import Path

import numpy as np
from made_run import T0, MadeRun

from mpidata.reporting.reading.history import History, read_events, tell
from mpidata.reporting.timeline import busy_shares


def told(run: MadeRun) -> History:
    return tell(read_events(run.path / "events.jsonl"))


def bars(story: History) -> list[tuple[int, int, float, float, str]]:
    return [(b.group, b.simulation, round(b.begin, 3), round(b.end, 3), b.how) for b in story.bars]


def test_each_simulation_is_a_bar(tmp_path: Path) -> None:
    run = MadeRun(tmp_path)
    run.events(
        (0, "start", {}),
        (1, "dispatch", {"simulation": 0, "group": 0}),
        (1, "dispatch", {"simulation": 1, "group": 1}),
        (3, "simulation_run", {"simulation": 0, "group": 0, "room_s": 0.5}),
        (3, "dispatch", {"simulation": 2, "group": 0}),
        (4, "simulation_complete", {"simulation": 0, "steps": 9}),  # trainers held it after its group had left it
        (5, "simulation_complete", {"simulation": 1, "steps": 9}),
        (7, "group_left", {"group": 0}),
        (8, "end", {"status": "complete"}),
    )
    story = told(run)
    assert bars(story) == [(0, 0, 1, 3, "complete"), (1, 1, 1, 5, "complete"), (0, 2, 3, 7, "complete")]
    assert [bar.room for bar in story.bars] == [0.5, 0.0, 0.0]


def test_failed_lost_and_unfinished_simulations_have_bars_and_marks(tmp_path: Path) -> None:
    run = MadeRun(tmp_path)
    run.events(
        (0, "start", {}),
        (0, "dispatch", {"simulation": 0, "group": 0}),
        (0, "dispatch", {"simulation": 1, "group": 1}),
        (2, "group_lost", {"group": 0, "how": "was killed by SIGKILL"}),
        (2.5, "retry", {"simulation": 0, "group": 0}),
        (3, "dispatch", {"simulation": 0, "group": 2}),
        (4, "group_lost", {"group": 1}),
        (5, "checkpoint", {"number": 1}),
    )
    story = told(run)
    assert bars(story) == [(0, 0, 0, 2, "failed"), (1, 1, 0, 4, "lost"), (2, 0, 3, 5, "unfinished")]
    assert [(m.time, m.what, m.group) for m in story.marks] == [
        (2, "group lost", 0), (2.5, "retry", 0), (4, "group lost", 1), (5, "checkpoint", None),
    ]  # fmt: skip
    assert story.groups == 3


def test_the_time_between_starts_does_not_count(tmp_path: Path) -> None:
    run = MadeRun(tmp_path)
    run.events((0, "start", {}), (1, "dispatch", {"simulation": 0, "group": 0}), (4, "checkpoint", {}))
    with open(run.path / "events.jsonl", "a") as events:
        events.write('{"time": 1.7e9, "event": "disp\n[1]\nnull\n')  # cut off; no event
    run.events((1000, "start", {}), (1001, "dispatch", {"simulation": 0, "group": 0}), (1003, "end", {}))
    story = told(run)
    assert bars(story) == [(0, 0, 1, 4, "unfinished"), (0, 0, 5, 7, "unfinished")]
    assert story.clock.resumes == [4] and story.clock.last == 7
    assert [story.clock.find(T0 + second) for second in (2, 1000, 1002)] == [2, 4, 6]


def test_busy_shares_are_averaged_in_bins(tmp_path: Path) -> None:
    run = MadeRun(tmp_path)
    run.events(
        (0, "start", {}),
        (1, "dispatch", {"simulation": 0, "group": 0}),
        (3.5, "simulation_complete", {"simulation": 0}),
        (2, "dispatch", {"simulation": 1, "group": 1}),
        (4, "simulation_complete", {"simulation": 1}),
    )
    story = told(run)
    assert np.allclose(busy_shares(story, 4, 2), [[0, 1, 1, 0.5], [0, 0, 1, 1]])
    assert np.allclose(busy_shares(story, 2, 1), [[0.25, 0.875]])
