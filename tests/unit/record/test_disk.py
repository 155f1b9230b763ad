"""The record of a trainer, whatever happens to the disk or the process."""

import contextlib
import errno
import os
import threading

import h5py
import pytest
from fake_library import make_plan
from recording import SAMPLES, RecordLibrary, check, make_plan_with_lengths, record

from mpidata import RecordedDataset
from mpidata.errors import MpidataError
from mpidata.record import columns as record_columns
from mpidata.record import file as record_file
from mpidata.record.shrink import shrink
from mpidata.record.writer import Recorder

BOTH = pytest.mark.parametrize("plan", [make_plan, make_plan_with_lengths], indirect=True)


def test_record_folder_that_cannot_be_created_is_refused(plan, tmp_path):
    (tmp_path / "samples").write_text("a file")
    with pytest.raises(MpidataError, match="cannot be written to .*samples: .*record.path"):
        Recorder(plan, RecordLibrary(plan), 0)


@BOTH
def test_a_full_disk_stops_the_record(plan, capfd):
    library = RecordLibrary(plan)
    recorder = Recorder(plan, library, 0)
    recorder.start()
    library.come(SAMPLES[:30])
    assert recorder.flush(10)
    library.error = errno.ENOSPC
    library.come(SAMPLES[30:])
    assert not recorder.flush(10)
    recorder.finish(10)
    err = capfd.readouterr().err
    assert "has stopped: No space left on device. The training continues" in err
    assert f"mpidata: {library.why.decode()}\n" in err
    assert "recorded 30 samples" in err and "the record is incomplete: No space left on device." in err
    check(RecordedDataset(plan.record_path), [s for s in SAMPLES[:30] if s[0] < 3])


def test_fsync_error_stops_the_record(plan, monkeypatch):
    """The loss is reported before the checkpoint that waits for the record can count."""
    library = RecordLibrary(plan)
    recorder = Recorder(plan, library, 0)
    recorder.start()
    library.come(SAMPLES[:30])

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("mpidata.record.file.os.fsync", fail)
    assert not recorder.flush(10)
    assert b"has stopped: Input/output error." in library.why
    recorder.finish(10)


@pytest.mark.parametrize("when_slow", ["skip", "slow_down"])
def test_slow_disk_is_reported_once_and_at_the_end(plan, capfd, when_slow):
    plan = make_plan(**vars(plan) | {"record_when_slow": when_slow, "record_every": 2})
    library = record(plan, SAMPLES[:40:2], **({"skipped": 5} if when_slow == "skip" else {"slowed_s": 2.5}))
    assert library.limit == (2, 65536, 256 << 20, when_slow == "skip")
    err = capfd.readouterr().err
    assert err.count(f"(record.when_slow: {when_slow})") == 1
    assert ("5 were skipped" if when_slow == "skip" else "waited for the disk for 2.5 s") in err
    assert ("record.skipped", 5.0) in library.reports or ("record.slowed_s", 2.5) in library.reports


def test_record_cut_short_at_the_end_is_reported_as_incomplete(plan, capfd):
    library = RecordLibrary(plan)
    recorder = Recorder(plan, library, 0)
    is_over = threading.Event()
    library.mpidata_trainer_record_write = lambda *_: is_over.wait(20) and 0
    recorder.start()
    library.come(SAMPLES)
    recorder.finish(0.1)
    is_over.set()
    recorder._thread.join(20)  # it would disturb other tests
    assert "the record is incomplete: the job ended before 80 samples were written" in capfd.readouterr().err


def test_interrupted_shrink_leaves_a_readable_file(plan, monkeypatch):
    given, samples = [], SAMPLES[: 12 if plan.lengths else 35]
    monkeypatch.setattr(record_file, "shrink", lambda *arguments: given.append(arguments))
    monkeypatch.setattr(record_file, "repack", lambda *_: None)
    for name in ("TOGETHER_BYTES", "EVENLY_BYTES"):
        monkeypatch.setattr(record_columns, name, 300)
    record(plan, samples)
    (path,) = plan.record_path.iterdir()
    whole, calls = path.read_bytes(), {"pwrite": os.pwrite, "ftruncate": os.ftruncate}

    def cut_after(steps):
        def call(name):
            def counted(*given):
                if len(done) == steps:
                    raise OSError(errno.EIO, "as if killed")
                done.append(name)
                return calls[name](*given)

            return counted

        done = []
        for name in calls:
            monkeypatch.setattr(os, name, call(name))
        with contextlib.suppress(OSError):
            shrink(*given[0])
        monkeypatch.undo()
        return done

    for steps in range(100):
        path.write_bytes(whole)
        done = cut_after(steps)
        check(RecordedDataset(plan.record_path), samples)
        if len(done) < steps:
            break
    assert done[-1] == "ftruncate" and len(done) > 5 and path.stat().st_size < len(whole)
    with h5py.File(path) as file:
        assert len(file["step"]) == len(samples)
