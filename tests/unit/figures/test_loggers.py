"""Reported values reach the loggers, whatever the loggers do."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from mpidata.figures.loggers import Loggers, load_loggers
from mpidata.run.folder import RunFolder

TRACKER = """
import threading
said = []
class Tracker:
    def open(self, run, job): said.append(("open", run, job["name"]))
    def write(self, time, batch, values): said.append((time, batch, values))
    def close(self, status): said.append(("close", status))
class Bad(Tracker):
    def write(self, time, batch, values): raise SystemExit("no network")
class Worse(Tracker):
    def open(self, run, job): raise OSError("no room")
class Slow(Tracker):
    def close(self, status): threading.Event().wait(60)
"""


def run(folder: Path, names: list[str], more: float = 5.0) -> list[str]:
    (folder / "trackers.py").write_text(TRACKER)
    said: list[str] = []
    loggers = Loggers(names, folder, {"name": "rod", "folder": str(folder)}, said.append)
    loggers.start()
    loggers.write_reports(1.5, [("loss", 1, 0.5), ("lr", 1, 0.1), ("loss", 1, 0.4), ("loss", 2, 0.25)])
    loggers.write(2.5, 3, {"fill": 1.0})
    loggers.close("complete", more)
    return said


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Any:
    import sys

    monkeypatch.delitem(sys.modules, "trackers", raising=False)
    return lambda: sys.modules["trackers"].said


WRITTEN = [
    (1.5, 1, {"loss": 0.5, "lr": 0.1}),
    (1.5, 1, {"loss": 0.4}),
    (1.5, 2, {"loss": 0.25}),
    (2.5, 3, {"fill": 1.0}),
]


def test_logger_class_receives_all_values(tmp_path: Path, told: Any) -> None:
    assert run(tmp_path, ["trackers:Tracker"]) == []
    assert told() == [("open", tmp_path, "rod"), *WRITTEN, ("close", "complete")]


def test_failing_logger_is_reported_once_and_others_continue(tmp_path: Path, told: Any) -> None:
    said = run(tmp_path, ["trackers:Bad", "trackers:Worse", "trackers:None", "trackers:Tracker"])
    assert [sentence.partition(" fails with ")[2].partition(", in ")[0] for sentence in said] == [
        "OSError: no room", "AttributeError: module 'trackers' has no attribute 'None'", "SystemExit: no network",
    ]  # fmt: skip
    assert [entry for entry in told() if entry[0] != "open"] == [*WRITTEN, ("close", "complete"), ("close", "complete")]


def test_logger_that_does_not_close_is_abandoned(tmp_path: Path, told: Any) -> None:
    begun = time.monotonic()
    assert "had not ended 0.2 s after the job" in run(tmp_path, ["trackers:Slow"], 0.2)[0]
    assert time.monotonic() - begun < 30  # it would close after 60 s


def test_no_thread_starts_without_loggers(tmp_path: Path) -> None:
    before = threading.active_count()
    assert run(tmp_path, []) == [] and threading.active_count() == before
    loggers = load_loggers(RunFolder(tmp_path))  # a run without a job file
    loggers.start()
    loggers.write(1.0, 1, {"loss": 1.0})
    loggers.close("failed", 1.0)


def test_tensorboard_reads_every_value(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("log: [tensorboard]\n")
    for first in (0, 60):  # the second start resumes from a checkpoint at batch 60
        loggers = load_loggers(RunFolder(tmp_path))
        loggers.start()
        for batch in range(first, 100):
            loggers.write_reports(1000.0 + batch, [("loss", batch, 1 / (1 + batch)), ("lr", batch, float(first))])
        loggers.close("complete", 20.0)
    found = EventAccumulator(str(tmp_path / "tensorboard"), size_guidance={"scalars": 0}).Reload()
    assert sorted(found.Tags()["scalars"]) == ["loss", "lr"]
    scalars = found.Scalars("loss")
    assert [(each.step, each.wall_time) for each in scalars] == [(batch, 1000.0 + batch) for batch in range(100)]
    assert [each.value for each in scalars] == pytest.approx([1 / (1 + batch) for batch in range(100)], rel=1e-6)
    assert [each.value for each in found.Scalars("lr")] == [0.0] * 60 + [60.0] * 40
