"""The record of a trainer that is killed, or whose disk is full, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest
from fake_library import make_plan
from recording import SAMPLES, check, make_plan_with_lengths, record

from mpidata import RecordedDataset

UNIT = str(Path(__file__).parents[2] / "unit")
BOTH = pytest.mark.parametrize("plan", [make_plan, make_plan_with_lengths], indirect=True)

FULL = """
import resource, sys
sys.path[:0] = {path!r}
import os, h5py
from pathlib import Path
from fake_library import make_plan
from mpidata.record import columns as record_columns
from mpidata.record.writer import Recorder
from recording import *
record_columns.TOGETHER_BYTES, record_columns.EVENLY_BYTES = 100, 500
plan = {make}(run=Path({run!r}), record_path=Path({folder!r}))
library = RecordLibrary(plan)
recorder = Recorder(plan, library, 0)
recorder.start()
library.come(SAMPLES[:35])
assert recorder.flush(10)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))
library.come(SAMPLES[35:])
assert not recorder.flush(10)
recorder.finish(10)
print(library.why.decode())
"""


@pytest.fixture
def plan(tmp_path, request):
    return request.param(run=tmp_path / "run", record_path=tmp_path / "samples")


def start(script, plan, **values):
    """Run a script that makes such a plan, and wait for its end."""
    make = "make_plan_with_lengths" if plan.lengths else "make_plan"
    text = script.format(path=[UNIT], make=make, run=str(plan.run), folder=str(plan.record_path), **values)
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("plan", "limit"),
    [
        *((make_plan, limit) for limit in (0, 2000, 8000, "os.path.getsize(recorder.path)")),
        (make_plan_with_lengths, 40000),
    ],
    indirect=["plan"],
)
def test_recorder_survives_a_full_disk(plan, limit):
    """Whatever is not written yet: HDF5 itself would crash when it closes the file."""
    done = start(FULL, plan, limit=limit)
    assert done.returncode == 0, done.stderr
    assert "has stopped: File too large." in done.stdout and "Traceback" not in done.stderr, done.stderr
    dataset = RecordedDataset(plan.record_path)
    assert 35 <= len(dataset)
    check(dataset, SAMPLES[: len(dataset)])


KILLED = """
import os, signal, sys
sys.path[:0] = {path!r}
import os, h5py
from pathlib import Path
from fake_library import make_plan
from mpidata.record import file as record_file
from mpidata.record.writer import Recorder
from recording import *
plan = {make}(run=Path({run!r}), record_path=Path({folder!r}))
library = RecordLibrary(plan)
recorder = Recorder(plan, library, 0)
recorder.start()
library.come(SAMPLES[:35])
assert recorder.flush(10)
write = library.mpidata_trainer_record_write
def cut(file, field, *place):
    if field == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(file, field, *place)
library.mpidata_trainer_record_write = cut
library.come(SAMPLES[35:])
recorder.finish(10)
"""


@BOTH
def test_file_of_a_killed_writer_can_be_read_and_continued(plan):
    """The writer is killed in the middle of a sample, with the file open."""
    done = start(KILLED, plan)
    assert done.returncode == -9, done.stderr
    check(RecordedDataset(plan.record_path), SAMPLES[:35])
    record(plan, SAMPLES[10:])
    check(RecordedDataset(plan.record_path), [s for s in SAMPLES if s[0] < 3])


KILLED_AT_THE_END = """
import os, signal, sys
sys.path[:0] = {path!r}
import os, h5py
from pathlib import Path
from fake_library import make_plan
from mpidata.record import file as record_file
from mpidata.record.writer import Recorder
from recording import *
resize = h5py.Dataset.resize
def cut(dataset, *given, **named):
    resize(dataset, *given, **named)
    if dataset.name == "/step":
        os.kill(os.getpid(), signal.SIGKILL)
h5py.Dataset.resize = cut
record({make}(run=Path({run!r}), record_path=Path({folder!r})), SAMPLES[:35])
"""


@BOTH
def test_file_of_a_writer_killed_while_closing_can_be_read_and_continued(plan):
    done = start(KILLED_AT_THE_END, plan)
    assert done.returncode == -9, done.stderr
    check(RecordedDataset(plan.record_path), SAMPLES[:35])
    record(plan, SAMPLES[10:])
    check(RecordedDataset(plan.record_path), [s for s in SAMPLES if s[0] < 3])
