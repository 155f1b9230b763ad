"""Statistics of fields as Python sees them, and the Normalizer."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_library import FakeLibrary, make_plan, make_trainer, memory

from mpidata import MPIStreamDataset, Normalizer
from mpidata.checkpoint.trainer_file import TrainerFile
from mpidata.errors import StreamError
from mpidata.native.moments import merge
from mpidata.run.plan import Field, Plan
from mpidata.trainer import join
from mpidata.trainer.field_statistics.statistics import read_statistics, write_statistics

FIELDS = (Field("velocity", "float32", (3, 4)), Field("count", "int32", ()))
# The moments of three channels of the velocity, the last one constant, and of the count.
MOMENTS = [
    [8, 2.0, 32.0, -1.0, 5.0, 1],
    [9, -4.0, 9.0, -6.0, -3.0, 0],
    [9, 7.0, 0.0, 7.0, 7.0, 0],
    [3, 1.0, 6.0, -1, 3, 0],
]


class Scaled(FakeLibrary):
    """Its statistics are MOMENTS, times the number of batches drawn."""

    def mpidata_trainer_scales(self, address: int) -> int:
        moments = np.array(MOMENTS, float)
        moments[:, 1] *= self.drawn / self.count if self.count else 1
        memory(address, moments.shape, "float64")[...] = moments
        return 0


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Scaled:
    monkeypatch.setattr(join, "_trainer", None)
    library = Scaled(make_plan(fields=FIELDS, statistics="0 -1", ranges="[[0.5, 2.0], null]"))
    make_trainer(library)
    return library


def test_merged_moments_equal_those_of_all_values() -> None:
    values = np.random.default_rng(0).normal(1000.0, 1e-3, 100)
    parts = [values[:0], values[:30], values[30:31], values[31:]]
    moments = [
        np.array([[len(p), p.mean(), np.square(p - p.mean()).sum(), p.min(), p.max(), 2.0]])
        if len(p) else np.array([[0, 0, 0, np.inf, -np.inf, 1.0]]) for p in parts
    ]  # fmt: skip
    (found,) = merge(moments)
    assert found[0] == 100 and found[5] == 7 and (found[3], found[4]) == (values.min(), values.max())
    assert found[1] == pytest.approx(values.mean(), rel=1e-15)
    assert np.sqrt(found[2] / 100) == pytest.approx(values.std(), rel=1e-9)


def test_statistics_are_read_per_channel_or_over_the_complete_field(library: Scaled) -> None:
    found = read_statistics(library.plan, library)
    assert found["velocity"].mean.tolist() == [2.0, -4.0, 7.0] and found["velocity"].std.tolist() == [2.0, 1.0, 0.0]
    assert found["velocity"].min.tolist() == [-1.0, -6.0, 7.0] and found["velocity"].not_finite.tolist() == [1.0, 0, 0]
    assert found["count"].mean.dtype is torch.float64 and found["count"].mean.shape == () and found["count"].max == 3
    assert read_statistics(library.plan, library, {"velocity": -2})["velocity"].mean.shape == (3,)
    whole = read_statistics(library.plan, library, {"velocity": None})["velocity"]
    assert whole.count == 26 and whole.mean == pytest.approx((8 * 2 - 9 * 4 + 9 * 7) / 26) and whole.min == -6
    for axes, sentence in [
        ({"velocity": 1}, r"Name the axis in the job file, 'samples: \{statistics: \{velocity: 1\}\}'"),
        ({"count": 0}, "'count' has none for the channels of axis 0"),
        ({"speed": 0}, "there is no field 'speed'. The fields are velocity, count."),
    ]:
        with pytest.raises(StreamError, match=sentence):
            read_statistics(library.plan, library, axes)
    plan = make_plan(fields=(Field("flag", "bool", (2,)), *FIELDS), statistics="-2 0 -1")
    assert list(read_statistics(plan, library)) == ["velocity", "count"]
    with pytest.raises(StreamError, match="statistics: 'flag' is bool and has none"):
        read_statistics(plan, library, {"flag": None})
    with pytest.raises(StreamError, match="The job keeps no statistics. Add 'samples:"):
        read_statistics(make_plan(), library)


def test_statistics_that_are_not_finite_are_written_as_null(library: Scaled, tmp_path: Path) -> None:
    plan = make_plan(run=tmp_path, fields=FIELDS, statistics="0 -1")
    MOMENTS[3], kept = [0, 0.0, 0.0, np.inf, -np.inf, 4], MOMENTS[3]
    try:
        write_statistics(plan, library)
    finally:
        MOMENTS[3] = kept
    told = json.loads((tmp_path / "statistics.json").read_text())
    assert told["channel_axes"] == {"velocity": 0} and told["fields"]["velocity"]["mean"] == [2.0, -4.0, 7.0]
    nothing = {"mean": [None], "std": [None], "min": [None], "max": [None], "count": [0.0], "not_finite": [4.0]}
    assert told["fields"]["count"] == nothing
    assert Plan.parse(plan.text()) == plan


def test_normalizer_follows_the_statistics_and_freezes_after_n_batches(library: Scaled) -> None:
    stream = MPIStreamDataset(batch_size=2)
    assert stream.parameter_ranges == {"alpha": (0.5, 2.0)} and stream.channel_axes == {"velocity": 0}
    normalizer = Normalizer(stream, after=3)
    means = []
    for batch in stream:
        scaled = normalizer(batch)
        mean = normalizer.get_buffer("mean_velocity")
        means.append(mean.tolist())
        assert torch.equal(scaled["velocity"][:, 1], (batch["velocity"][:, 1] - mean[1].float()) / 1.0)
        assert torch.equal(scaled["velocity"][:, 2], batch["velocity"][:, 2] - mean[2].float())  # constant
        assert scaled["count"].dtype is torch.float32 and scaled["time"] is batch["time"]
        assert torch.allclose(normalizer.denormalize("velocity", scaled["velocity"]), batch["velocity"])
        windows = batch["velocity"][:, None].double().expand(2, 5, 3, 4)
        assert normalizer.normalize("velocity", windows).shape == windows.shape
        assert normalizer.normalize("velocity", windows).dtype is torch.float64
    assert means == [[2.0 * n, -4.0 * n, 7.0 * n] for n in (1, 2, 3, 3, 3, 3)] and bool(normalizer.frozen)
    with pytest.raises(StreamError, match="there is no field 'x'. The fields are velocity, count."):
        normalizer.normalize("x", windows)


def test_restored_frozen_normalizer_stays_frozen(library: Scaled) -> None:
    stream = MPIStreamDataset(batch_size=2)
    first, batches = Normalizer(stream, after=2), iter(stream)
    for _ in range(3):
        next(batches)
    second = Normalizer(stream, after=5)
    second.load_state_dict(first.state_dict())
    late = Normalizer(stream, after=1)
    for _ in range(3):
        next(batches)
    assert second.get_buffer("mean_count") == 2.0 and late.get_buffer("mean_count") == 4.0 and late.frozen
    for after in (0, True, 1.5):
        with pytest.raises(StreamError, match="is not a positive integer"):
            Normalizer(stream, after=after)  # type: ignore[arg-type]


def test_a_checkpoint_without_statistics_is_refused(tmp_path: Path) -> None:
    import h5py

    file = object.__new__(TrainerFile)
    file.path = tmp_path / "trainer.h5"
    for contents in (None, np.zeros((2, 6))):
        with h5py.File(file.path, "w") as written:
            if contents is not None:
                written["scales"] = contents
        file._file, file._bytes = h5py.File(file.path), 10000
        found: Any = file
        with pytest.raises(StreamError, match="was written with another value. Restore that value."):
            found.scales(3)
        file._file.close()


def test_normalizer_is_made_equal_on_all_trainers_when_it_freezes(
    library: Scaled, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = MPIStreamDataset(2)
    normalizer = Normalizer(stream, after=2)
    alike: list[int] = []

    def take(tensors: list[torch.Tensor]) -> None:
        alike.append(len(tensors))
        for tensor in tensors:
            tensor.fill_(5.0)

    monkeypatch.setattr(stream, "make_alike", take)
    batches = iter(stream)
    next(batches)
    assert not alike and not normalizer.frozen
    next(batches)
    assert alike == [4] and normalizer.frozen
    assert all((buffer == 5.0).all() for name, buffer in normalizer.named_buffers() if name != "frozen")
