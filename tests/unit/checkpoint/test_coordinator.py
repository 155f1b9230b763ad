"""The coordinator with trainers that the test plays."""

import errno
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from fake_library import make_event, make_plan

from mpidata.checkpoint import newest_valid, numbers, path_of, read_scheduler
from mpidata.checkpoint.files import CHECKSUMS, digest, trainer_file, unfinished
from mpidata.errors import MpidataError
from mpidata.native.constants import LOOP_OVER, TRAINS
from mpidata.native.event import CheckpointWanted, CheckpointWritten
from mpidata.scheduler.coordinator import Coordinator


class Job:
    def __init__(self, run: Path, **plan: Any) -> None:
        self.plan = make_plan(run=run, trainers=2, world=9, **plan)
        self.folder = run / "checkpoints"
        self.orders: list[int] = []
        self.notes: list[tuple[str, dict[str, Any]]] = []
        self.state: dict[str, Any] = {"tries": [1, 2]}
        self.coordinator = Coordinator(self.plan, self, lambda: dict(self.state), self.note, now=0.0)

    def checkpoint(self, number: int) -> None:
        self.orders.append(number)

    def note(self, event: str, **values: Any) -> None:
        self.notes.append((event, values))

    def tick(self, now: float, **options: bool) -> None:
        """Tick until all work in threads is done."""
        self.coordinator.tick(now, **options)
        while self.coordinator._task is not None:
            self.coordinator._task.join()
            self.coordinator.tick(now, **options)

    def write(self, trainer: int, number: int, batch: int = 40, failed: int = 0, text: str = "") -> None:
        size = 0
        if not failed:
            path = unfinished(self.folder, number) / trainer_file(trainer)
            path.write_bytes(bytes([trainer]) * 5000)
            text, size = digest(path).sha256, 5000
        self.written(index=trainer, number=number, batch=batch, bytes=size, failed=failed, text=text)

    def written(self, **values: Any) -> None:
        self.coordinator.written(make_event(CheckpointWritten, **values))

    def whole(self, now: float, number: int, batch: int = 40) -> None:
        for trainer in range(2):
            self.write(trainer, number, batch)
        self.tick(now)

    def ask(self, trainer: int, batch: int, now: float) -> None:
        self.coordinator.asked(make_event(CheckpointWanted, index=trainer, batch=batch), now)
        self.tick(now)


def test_checkpoint_becomes_valid_after_all_trainers_have_written(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.tick(1000.0)
    assert not job.coordinator.busy and job.orders == []
    job.coordinator.want(1000.0)
    job.state["tries"] = "later"
    job.tick(1000.0)
    assert job.coordinator.busy and job.orders == [1]
    job.write(1, 1)
    job.tick(1001.0)
    assert newest_valid(job.folder) == (0, [])
    job.write(0, 1)
    job.tick(1002.5)
    assert newest_valid(job.folder) == (1, []) and job.coordinator.last_valid == 1
    assert read_scheduler(path_of(job.folder, 1)) == {"tries": [1, 2]}
    (event, values) = job.notes.pop()
    assert event == "checkpoint" and values["bytes"] > 10000
    assert values | {"bytes": 0} == {"number": 1, "batch": 40, "seconds": 2.5, "bytes": 0}
    assert not job.coordinator.busy and not list(job.folder.glob("*.new"))


def test_checkpoint_folders_are_not_writable_by_other_users(tmp_path: Path) -> None:
    job, before = Job(tmp_path), os.umask(0)
    try:
        job.coordinator.want(0.0)
        job.tick(0.0)
    finally:
        os.umask(before)
    folders = (job.folder, unfinished(job.folder, 1))
    assert [stat.S_IMODE(path.stat().st_mode) for path in folders] == [0o755, 0o755]


def test_only_the_newest_periodic_checkpoints_are_kept(tmp_path: Path) -> None:
    job = Job(tmp_path, checkpoint_every_s=300.0, checkpoint_keep=2)
    job.tick(299.0)
    assert job.orders == []
    job.tick(300.0, may_begin=False)
    assert job.orders == []
    for number in range(1, 5):
        job.tick(301.0 * number)
        assert job.orders[-1] == number
        job.tick(301.0 * number + 1)
        job.whole(301.0 * number + 2, number)
    assert numbers(job.folder) == [3, 4]
    job.tick(301.0 * 4 + 299)
    assert len(job.orders) == 4


def test_new_checkpoint_succeeds_if_old_ones_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job, rename = Job(tmp_path, checkpoint_keep=1), os.rename

    def refuse(path: Path, to: Path) -> None:
        if to.suffix == ".new":
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        rename(path, to)

    monkeypatch.setattr(os, "rename", refuse)
    for number in (1, 2):
        job.coordinator.want(10.0 * number)
        job.tick(10.0 * number)
        job.whole(10.0 * number + 1, number)
    assert [event for event, _ in job.notes] == ["checkpoint", "checkpoint"] and job.coordinator.failure is None
    assert job.coordinator.last_valid == 2 and numbers(job.folder) == [1, 2]
    said = "Old checkpoints cannot be removed: [Errno 30] Read-only file system"
    assert said in capsys.readouterr().err
    monkeypatch.undo()
    job.coordinator.want(30.0)
    job.tick(30.0)
    job.whole(31.0, 3)
    assert numbers(job.folder) == [3]


def test_request_during_a_checkpoint_causes_no_second_one(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.coordinator.want(1.0)
    job.tick(1.0)
    job.coordinator.want(2.0)
    job.whole(3.0, 1)
    job.tick(4.0)
    assert job.orders == [1] and not job.coordinator.busy


def test_requests_of_all_trainers_at_one_batch_cause_one_checkpoint(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.ask(0, 38, 1.0)
    job.ask(1, 38, 1.0)
    job.whole(2.0, 1, batch=40)
    assert job.orders == [1] and not job.coordinator.busy


def test_request_at_a_later_batch_waits_for_the_next_checkpoint(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.ask(0, 38, 1.0)
    job.ask(1, 41, 1.0)
    assert job.orders == [1]
    job.whole(2.0, 1, batch=40)
    assert job.orders == [1, 2]


def test_write_error_of_a_trainer_fails_the_checkpoint(tmp_path: Path) -> None:
    job = Job(tmp_path, checkpoint_every_s=10.0)
    job.tick(10.0)
    job.write(0, 1)
    job.write(1, 1, failed=1, text="trainer 1 cannot write: No space left on device")
    job.tick(12.0)
    assert job.notes == [
        ("checkpoint_failed", {"number": 1, "reason": "trainer 1 cannot write: No space left on device"})
    ]
    assert job.coordinator.failure == "trainer 1 cannot write: No space left on device"
    assert list(job.folder.iterdir()) == [] and job.coordinator.last_valid == 0
    job.tick(19.0)
    assert job.orders == [1]
    job.tick(20.0)
    job.whole(21.0, 2)
    assert job.coordinator.failure is None and job.coordinator.last_valid == 2


def test_no_checkpoint_is_ordered_after_the_loop(tmp_path: Path) -> None:
    job = Job(tmp_path, checkpoint_every_s=10.0)
    job.tick(10.0)
    for trainer in range(2):
        job.write(trainer, 1, failed=LOOP_OVER, text="the training loop is over")
    job.tick(11.0)
    job.tick(100.0)
    job.coordinator.want(100.0)
    assert job.orders == [1] and not job.coordinator.busy
    assert job.coordinator.failure == "the training loop is over"
    assert job.notes == []  # the end of the loop is not reported as a failure


def test_write_error_is_reported_even_if_other_trainers_left_the_loop(tmp_path: Path) -> None:
    for first in (0, 1):
        job = Job(tmp_path / str(first), checkpoint_every_s=10.0)
        (tmp_path / str(first)).mkdir()
        job.tick(10.0)
        for trainer in (first, 1 - first):
            job.write(
                trainer, 1, failed=(1, LOOP_OVER)[trainer], text=("No space", "the training loop is over")[trainer]
            )
        job.tick(11.0)
        assert job.notes == [("checkpoint_failed", {"number": 1, "reason": "No space"})]


def test_file_of_the_wrong_size_fails_the_checkpoint(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.coordinator.want(1.0)
    job.tick(1.0)
    for trainer in range(2):
        job.write(trainer, 1)
    (unfinished(job.folder, 1) / trainer_file(1)).write_bytes(b"short")
    job.tick(2.0)
    assert "trainer-0001.h5 has 5 bytes, but its trainer wrote 5000" in (job.coordinator.failure or "")
    assert list(job.folder.iterdir()) == []


def test_folder_that_cannot_be_created_fails_the_checkpoint(tmp_path: Path) -> None:
    job = Job(tmp_path / "removed")
    job.coordinator.want(1.0)
    job.tick(1.0)
    assert "No such file" in (job.coordinator.failure or "") and job.orders == [] and not job.coordinator.busy


def test_checkpoint_numbers_continue_after_a_resume(tmp_path: Path) -> None:
    for name in ("000003", "000004", "000005", "000006.new"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    job = Job(tmp_path, checkpoint=4)  # 5 is damaged
    assert job.coordinator.last_valid == 4
    job.coordinator.want(1.0)
    job.tick(1.0)
    assert job.orders == [6]
    job.whole(2.0, 6)
    assert numbers(job.folder) == [4, 6] and newest_valid(job.folder) == (6, [])


def test_close_completes_a_written_checkpoint_and_removes_an_unfinished_one(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.coordinator.close(1.0)
    job.coordinator.want(1.0)
    assert not job.coordinator.busy

    job = Job(tmp_path)
    job.coordinator.want(1.0)
    job.tick(1.0)
    for trainer in range(2):
        job.write(trainer, 1)
    job.coordinator.close(2.0)
    assert newest_valid(job.folder) == (1, [])

    job = Job(tmp_path, checkpoint=1)
    job.coordinator.want(1.0)
    job.tick(1.0)
    job.write(0, 2)
    job.coordinator.close(2.0)
    assert [path.name for path in job.folder.iterdir()] == ["000001"]


def test_slow_disk_does_not_block_the_scheduler_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(tmp_path)
    written = threading.Event()
    monkeypatch.setattr("mpidata.scheduler.coordinator.sync_folder", lambda path: written.wait(20))
    job.coordinator.want(1.0)
    job.tick(1.0)
    for trainer in range(2):
        job.write(trainer, 1)
    job.coordinator.tick(2.0)
    job.coordinator.tick(2.0)
    assert job.coordinator.busy
    written.set()
    job.tick(2.0)
    assert not job.coordinator.busy


def test_messages_of_trainers_are_checked(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.coordinator.want(1.0)
    job.tick(1.0)
    job.written(index=0, number=7, text="of another one")
    with pytest.raises(MpidataError, match="as number 2 of 2"):
        job.written(index=2, number=1)
    with pytest.raises(MpidataError, match="sent 'x' as a checksum"):
        job.written(index=1, number=1, text="x")


def test_checkpoint_does_not_wait_for_a_trainer_lost_before_the_order(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.coordinator.want(10.0)
    job.coordinator.trainer_lost(0)
    job.tick(10.0)
    job.write(1, 1)
    job.tick(11.0)
    assert (
        newest_valid(job.folder) == (1, [])
        and job.orders == [1]
        and [event for event, _ in job.notes] == ["checkpoint"]
    )
    assert [path.name for path in path_of(job.folder, 1).glob("*.h5")] == [trainer_file(1)]


def test_checkpoint_restarts_if_a_trainer_is_lost_before_writing(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.coordinator.want(10.0)
    job.tick(10.0)
    job.coordinator.trainer_lost(0)
    job.write(1, 1)
    job.tick(11.0)
    assert job.notes.pop() == ("checkpoint_again", {"number": 1, "reason": "trainer 0 has died meanwhile"})
    assert job.orders == [1, 2]
    job.write(1, 2)
    job.tick(12.0)
    assert newest_valid(job.folder) == (2, []) and not job.coordinator.busy and job.coordinator.failure is None


def test_write_error_fails_a_checkpoint_also_if_a_trainer_is_lost(tmp_path: Path) -> None:
    for failed_first in (False, True):
        job = Job(tmp_path / str(failed_first))
        (tmp_path / str(failed_first)).mkdir()
        job.coordinator.want(10.0)
        job.tick(10.0)
        if failed_first:
            job.write(1, 1, failed=1, text="No space")
        job.coordinator.trainer_lost(0)
        if not failed_first:
            job.write(1, 1, failed=1, text="No space")
        job.tick(11.0)
        assert job.notes == [("checkpoint_failed", {"number": 1, "reason": "No space"})] and job.orders == [1, 2]


def test_checkpoint_includes_the_part_of_a_trainer_lost_after_writing(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.coordinator.want(10.0)
    job.tick(10.0)
    job.write(0, 1)
    job.coordinator.trainer_lost(0)
    job.tick(10.5)
    assert newest_valid(job.folder) == (0, [])
    job.write(1, 1)
    job.tick(11.0)
    assert (
        newest_valid(job.folder) == (1, [])
        and job.orders == [1]
        and len(list(path_of(job.folder, 1).glob("*.h5"))) == 2
    )


@pytest.mark.parametrize("before", [0, 1])
def test_joined_spare_takes_part_only_in_checkpoints_after_the_reported_one(tmp_path: Path, before: int) -> None:
    job = Job(tmp_path, trainer_spares=1)
    job.coordinator.want(0.0)
    job.tick(0.0)
    job.coordinator.trainer_joined(1, [(TRAINS, 40, float(before))])
    job.write(0, 1)
    job.tick(1.0)
    assert job.coordinator.busy == (before == 0)
    if before == 0:
        job.write(1, 1)
        job.tick(2.0)
    files = json.loads((path_of(job.folder, 1) / CHECKSUMS).read_text())["files"]
    assert (trainer_file(1) in files) == (before == 0)


def test_checkpoint_at_the_end_is_dropped_if_a_lost_trainer_had_not_written(tmp_path: Path) -> None:
    """Unless its part was written: then the last other trainer completes the checkpoint."""
    for number, written in ((1, False), (2, True)):
        job = Job(tmp_path, checkpoint=number - 1)
        job.coordinator.want(10.0)
        job.tick(10.0)
        if written:
            job.write(0, number)
        job.coordinator.trainer_lost(0)
        job.write(1, number)
        job.coordinator.close(11.0)
        assert numbers(job.folder) == [2] * written and not list(job.folder.glob("*.new")) and job.orders == [number]
