"""A trainer that draws nothing while its buffer is full tells where it stands, once."""

import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))

from fake_library import make_plan  # noqa: E402

from mpidata.trainer.idle import IdleWatch  # noqa: E402


class Statistics:
    """A library whose trainer has these figures."""

    def __init__(self, fill: int = 10, drawn: int = 3) -> None:
        self.fill, self.capacity, self.drawn = fill, 10, drawn
        self.looks = 0

    def mpidata_trainer_statistics(self, figures) -> int:
        self.looks += 1
        figures._obj.fill, figures._obj.capacity, figures._obj.drawn = self.fill, self.capacity, self.drawn
        return 0

    def wait_for_looks(self, count: int) -> None:
        wanted, deadline = self.looks + count, time.monotonic() + 30
        while self.looks < wanted:
            assert time.monotonic() < deadline
            time.sleep(0.001)


def watch(run: Path, library: Statistics, index: int = 1, in_draw=lambda: False, after_s: float = 0.05) -> IdleWatch:
    (run / "logs").mkdir(exist_ok=True)
    watching = IdleWatch(make_plan(run=run, trainers=2), library, index, in_draw, after_s, every_s=0.01)
    watching.start()
    return watching


def waits_for_the_others(release: threading.Event) -> None:
    release.wait()


def test_it_tells_once_with_the_stacks(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    release = threading.Event()
    other = threading.Thread(target=waits_for_the_others, args=[release], name="training")
    other.start()
    watching = watch(tmp_path, Statistics())
    watching._thread.join(30)
    release.set()
    told = capfd.readouterr().err
    assert told.startswith(
        "mpidata: Trainer 1 has drawn nothing for 0.05 s (after 3 batches), though its buffer is full"
    )
    assert "  Thread training:\n" in told and "in waits_for_the_others\n    release.wait()\n" in told.replace(
        "      ", "    "
    )
    assert "Thread MainThread:" in told and "mpidata-idle" not in told
    assert (tmp_path / "logs" / "idle.log").read_text() == told


def test_the_log_of_the_first_trainer_is_shown_anyway(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    watch(tmp_path, Statistics(), index=0)._thread.join(30)
    assert "Trainer 0 has drawn nothing" in capfd.readouterr().err and not (tmp_path / "logs" / "idle.log").exists()


@pytest.mark.parametrize("why", ["room", "waits in a draw", "draws"])
def test_others_are_left_in_peace(tmp_path: Path, capfd: pytest.CaptureFixture[str], why: str) -> None:
    library = Statistics(fill=9 if why == "room" else 10)
    watching = watch(
        tmp_path, library, in_draw=lambda: why == "waits in a draw", after_s=0.3 if why == "draws" else 0.03
    )
    for _ in range(20):
        library.wait_for_looks(2)
        library.drawn += why == "draws"
    assert watching._thread.is_alive()
    watching.stop()
    watching._thread.join(30)
    assert capfd.readouterr().err == ""
