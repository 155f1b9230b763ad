"""Change the number of trainers of a running job with `mpidata scale`."""

import subprocess
import time
from collections.abc import Callable

from jobs import BIN, JobFolder, Result, environment
from killing import events_of
from waiting import wait_until

__all__ = ["count", "run_meanwhile", "scale_up_and_down"]


def run_meanwhile(folder: JobFolder, meanwhile: Callable[[], object], timeout: float = 120) -> Result:
    """Run a job, and call `meanwhile` while it runs."""
    process = folder.start()
    meanwhile()
    result = folder.finish(process, timeout, time.monotonic())
    folder.assert_nothing_left()
    return result


def count(folder: JobFolder, name: str) -> int:
    """Count the events of this name."""
    return sum(event["event"] == name for event in events_of(folder.path))


def scale_up_and_down(folder: JobFolder, down: bool = True) -> None:
    """Scale from two trainers to four, then to three if `down`."""

    def scale_to(trainers: int) -> str:
        command = [BIN / "mpidata", "scale", "runs/job/1", "--trainers", str(trainers)]
        done = subprocess.run(command, cwd=folder.path, env=environment(), capture_output=True, text=True, timeout=30)
        return done.stdout + done.stderr

    books = folder.path / "runs" / "job" / "1"
    wait_until(
        lambda: count(folder, "dispatch") > 2 or any("pull" in book.read_text() for book in books.glob("book-*")), 60
    )
    assert "4 trainers from the next step on, there were 2." in scale_to(4)
    wait_until(lambda: count(folder, "trainer_joined") == 2, 60)
    if not down:
        return
    assert "3 trainers from the next step on, there were 4." in scale_to(3)
    wait_until(lambda: count(folder, "trainer_retired") == 1, 60)
