"""Damaged files of checkpoints and records raise a clear error: no other exception, no hang, no huge allocation."""

import json
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from fake_library import FIELDS, make_plan
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trainers import plan_of, write_trainer

from mpidata import RecordedDataset
from mpidata.checkpoint import path_of, received
from mpidata.checkpoint.files import SCHEDULER, trainer_file
from mpidata.checkpoint.restore import restore
from mpidata.errors import MpidataError
from mpidata.record.file import RecordFile, Rows
from mpidata.record.layout import Header
from mpidata.record.recorded_steps import RecordedSteps
from mpidata.scheduler.deaths.lost_groups import Losses
from mpidata.scheduler.figures.summary import Figures
from mpidata.scheduler.restore import restore as restore_scheduler
from mpidata.scheduler.simulations import Simulations

MANY = settings(
    max_examples=25, deadline=5000, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
HUGE = [-1, 0, 1, 7, 2**31, 2**62, -(2**63)]
VALUES = st.one_of(
    st.sampled_from(HUGE), st.floats(), st.text(max_size=5), st.binary(max_size=5), st.booleans(),
    st.lists(st.sampled_from(HUGE), max_size=9).map(lambda values: np.array(values, np.int64)),
    st.sampled_from([h5py.Empty("f8"), np.zeros((2, 2)), np.array(["a", "b"], object), np.nan, np.float32(1)]),
)  # fmt: skip
SHAPES = st.sampled_from([(), (0,), (1,), (5,), (7, 2), (1 << 40,), (1 << 40, 2)])
DTYPES = st.sampled_from(["i8", "u1", "f8", ">i8", "f4", "S3", "u8", h5py.string_dtype(), [("a", "i4")], "?"])


class _Taking:
    """A library that accepts everything."""

    def __getattr__(self, name: str) -> Callable[..., int]:
        return lambda *_: 0


@pytest.fixture(scope="module", autouse=True)
def _little_memory() -> Iterator[None]:
    """Make a huge allocation fail instead of taking the machine down."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (4 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = plan_of(tmp_path_factory.mktemp("checkpoint"), 2)
    write_trainer(plan, 0, [[(2, 4), (0, 2)], [(2, 6)], [(1, 3)], [(6, 0)]], 1, {0: (4, 4, []), 2: (-1, 2, [4, 130])},
                  {"model": b"state"})  # fmt: skip
    write_trainer(plan, 1, [[(2, 5)], [], [], []], 1, {0: (4, 4, []), 2: (-1, 0, [5])})
    state = {"tries": {"2": 1}, "retries": [], "set_aside": [], "lost_groups": 0, "first": {"loss": 1.0}, "last": {}}
    (path_of(plan.run / "checkpoints", plan.checkpoint) / SCHEDULER).write_text(json.dumps(state))
    return plan.run


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("record")
    file = RecordFile(folder / "trainer-0000.h5", Header.of(make_plan(), 0))
    n = 6
    rows = Rows(np.arange(n) // 2, np.arange(n) % 2, np.arange(n, dtype=float), np.zeros(n, np.uint8), np.ones((n, 2)))
    file.append(rows, lambda descriptor, field, first, count, offset: None)
    file.close()
    return folder


def use_checkpoint(folder: Path) -> None:
    plan = plan_of(folder, 2)
    received(path_of(plan.run / "checkpoints", plan.checkpoint))
    for trainers in (2, 3):
        changed = plan_of(folder, trainers)
        restore(changed, _Taking(), 0)  # type: ignore[arg-type]
    simulations = Simulations(plan.simulations + plan.validation, plan.trainers)
    restore_scheduler(plan, simulations, Losses(plan), Figures(plan.trainers, plan.capacity))


def use_record(folder: Path) -> None:
    dataset = RecordedDataset(folder)
    for index in range(min(len(dataset), 20)):
        dataset[index]
    RecordedSteps(folder, Header.of(make_plan(), 0), 1)


def expect_a_sentence(use: Callable[[Path], None], original: Path, harm: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "copy"
        shutil.copytree(original, folder)
        harm(folder)
        try:
            use(folder)
        except MpidataError as error:
            assert str(folder) in str(error) or "trainer" in str(error)
            assert "\n" not in str(error).strip()


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.h5"))


def harm_bytes(folder: Path, which: int, places: list[tuple[float, int]], cut: float | None) -> None:
    files = files_of(folder)
    path = files[which % len(files)]
    contents = bytearray(path.read_bytes())
    for place, value in places:
        contents[int(place * (min(len(contents), 16384) - 1))] = value
    path.write_bytes(contents[: None if cut is None else int(cut * len(contents))])


def harm_structure(folder: Path, which: int, name: int, what: str, value: Any, shape: Any, dtype: Any) -> None:
    files = files_of(folder)
    with h5py.File(files[which % len(files)], "r+") as file:
        names: list[str] = []
        file.visit(names.append)
        attributes = sorted(file.attrs)
        chosen = names[name % len(names)]
        if what == "attribute":
            key = attributes[name % len(attributes)]
            del file.attrs[key]
            file.attrs[key] = value
        elif what == "no attribute":
            del file.attrs[attributes[name % len(attributes)]]
        else:
            del file[chosen]
            if what == "group":
                file.create_group(chosen)
            elif what == "dataset":
                file.create_dataset(chosen, shape, dtype, chunks=(1024,) if shape == (1 << 40,) else None)


BYTES = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=4)
CUT = st.one_of(st.none(), st.floats(0, 1))
WHAT = st.sampled_from(["attribute", "no attribute", "nothing", "group", "dataset", "dataset"])
WHICH = st.integers(0, 1)
NAME = st.integers(0, 60)


@MANY
@given(which=WHICH, places=BYTES, cut=CUT)
def test_bytes_of_a_checkpoint(
    checkpoint: Path, which: int, places: list[tuple[float, int]], cut: float | None
) -> None:
    expect_a_sentence(use_checkpoint, checkpoint, lambda folder: harm_bytes(folder, which, places, cut))


@MANY
@given(which=WHICH, places=BYTES, cut=CUT)
def test_bytes_of_a_record(record: Path, which: int, places: list[tuple[float, int]], cut: float | None) -> None:
    expect_a_sentence(use_record, record, lambda folder: harm_bytes(folder, which, places, cut))


@MANY
@given(which=WHICH, name=NAME, what=WHAT, value=VALUES, shape=SHAPES, dtype=DTYPES)
def test_structure_of_a_checkpoint(checkpoint: Path, **harm: Any) -> None:
    expect_a_sentence(use_checkpoint, checkpoint, lambda folder: harm_structure(folder, **harm))


@MANY
@given(which=WHICH, name=NAME, what=WHAT, value=VALUES, shape=SHAPES, dtype=DTYPES)
def test_structure_of_a_record(record: Path, **harm: Any) -> None:
    expect_a_sentence(use_record, record, lambda folder: harm_structure(folder, **harm))


JSON = st.recursive(
    st.none() | st.booleans() | st.sampled_from(HUGE) | st.text(max_size=3), lambda inner: st.lists(inner, max_size=2)
    | st.dictionaries(st.sampled_from(["simulation", "1", "x", "99"]), inner, max_size=2), max_leaves=4,
)  # fmt: skip
KEYS = ["tries", "retries", "set_aside", "lost_groups", "first", "last", "record_stopped", "seconds", "bytes"]


@MANY
@given(state=st.dictionaries(st.sampled_from(KEYS), JSON, max_size=3) | JSON)
def test_the_state_of_a_scheduler(checkpoint: Path, state: Any) -> None:
    def harm(folder: Path) -> None:
        plan = plan_of(folder, 2)
        (path_of(plan.run / "checkpoints", plan.checkpoint) / SCHEDULER).write_text(json.dumps(state))

    expect_a_sentence(use_checkpoint, checkpoint, harm)


def test_the_undamaged_ones_can_be_used(checkpoint: Path, record: Path) -> None:
    use_checkpoint(checkpoint)
    use_record(record)
    assert len(RecordedDataset(record)) == 6 and len(FIELDS) == 2
    assert (path_of(checkpoint / "checkpoints", 5) / trainer_file(1)).exists()
