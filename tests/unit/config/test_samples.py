"""`samples`: windows of steps, and the buffer that has to hold them."""

from pathlib import Path

import pytest

from mpidata.config import load_job
from mpidata.errors import JobFileError
from mpidata.run.plan import Plan

TEXT = """\
trainers: {program: [python, train.py]}
solvers: {program: [./heat2d]}
parameters: {count: 8, space: {alpha: [0.01, 0.1]}}
fields: {u: {shape: [4]}}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "train.py").touch()
    (tmp_path / "heat2d").touch(mode=0o755)
    (tmp_path / "job.yaml").write_text(TEXT)
    return tmp_path / "job.yaml"


@pytest.mark.parametrize(
    ("given", "window", "stride", "run"),
    [
        ([], 1, 1, 1),
        (["samples.window=1"], 1, 1, 1),
        (["samples.window=2"], 2, 1, 10),
        (["samples.window=3", "samples.stride=2"], 3, 2, 40),
        (["samples.window=3", "samples.stride=2", "samples.run=4"], 3, 2, 4),
    ],
)
def test_plan_has_windows_and_runs(path: Path, given: list[str], window: int, stride: int, run: int) -> None:
    plan = Plan.of(load_job(path, given), path.parent / "run")
    assert (plan.samples_window, plan.samples_stride, plan.samples_run) == (window, stride, run)
    assert Plan.parse(plan.text()) == plan
    assert ("samples" in plan.text()) == (window > 1)


def test_some_fields_have_no_statistics(path: Path) -> None:
    given = [
        "samples.statistics.u=0",
        "fields.flag={dtype: bool, shape: [9]}",
        "fields.z={dtype: complex64, shape: []}",
    ]
    given += ["fields.ids={dtype: int32, shape: [3], statistics: false}", "fields.n={dtype: uint16, shape: [5]}"]
    plan = Plan.of(load_job(path, given), path.parent / "run")
    assert plan.statistics == "0 -2 -2 -2 -1" and plan.channel_axes == {"u": 0}
    assert plan.channels == {"u": 4, "n": 1} and plan.n_moments == 5
    assert Plan.parse(plan.text()) == plan


def test_plan_has_axes_of_channels_and_ranges(path: Path) -> None:
    assert "statistics" not in Plan.of(load_job(path), path.parent / "run").text()
    plan = Plan.of(load_job(path, ["samples.statistics=true"]), path.parent / "run")
    assert plan.statistics == "-1" and plan.channel_axes == {} and plan.n_moments == 1
    given = ["samples.statistics.u=-1", "fields.n.shape=[2, 3]", "parameters.space.b={choices: [3, 1]}"]
    plan = Plan.of(load_job(path, given), path.parent / "run")
    assert plan.statistics == "0 -1" and plan.channel_axes == {"u": 0} and plan.n_moments == 5
    assert plan.ranges == "[[0.01, 0.1], [1.0, 3.0]]" and Plan.parse(plan.text()) == plan
    (path.parent / "table.csv").write_text("alpha,b\n0.02,7\n0.03,-1\n")
    table = ["parameters={sampler: file, path: table.csv}"]
    assert Plan.of(load_job(path, table), path.parent / "run").ranges == "[[0.02, 0.03], [-1.0, 7.0]]"


def test_watermark_counts_windows_and_capacity_steps(path: Path) -> None:
    assert load_job(path).buffer.watermark == 100
    assert load_job(path, ["samples.window=5"]).buffer.watermark == 20
    assert load_job(path, ["samples.window=5", "buffer.capacity=100"]).buffer.watermark == 2
    assert load_job(path, ["samples.window=5", "buffer.watermark=7"]).buffer.watermark == 7


def test_stride_and_run_have_no_effect_without_windows(path: Path) -> None:
    job = load_job(path, ["samples.stride=2", "samples.run=9"])
    assert (job.samples.stride, job.samples.run_steps) == (1, 1)
    assert [note.split(":")[1].split(" (")[0] for note in job.notes if "samples" in note] == [
        " 'samples.stride' is 2",
        " 'samples.run' is 9",
    ]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            ["samples.window=2", "journal=true"],
            "'journal' is true, but windows cannot be replayed. Remove it, or 'samples.window'.",
        ),
        (
            ["samples.statistics=true", "journal=true"],
            "'journal' is true, but statistics are not replayed. Remove it, or 'samples.statistics'.",
        ),
        (
            ["samples.statistics.u=1"],
            "'samples.statistics.u' is 1, but the field has the shape [4]. Name one of its axes, from 0.",
        ),
        (["samples.statistics.v=0"], "'samples.statistics.v': there is no field 'v'. The fields are u."),
        (
            ["samples.statistics.u=0", "fields.u.shape=[5000]"],
            "'samples.statistics.u': this makes 5000 channels, more than 4000. Leave out an axis.",
        ),
        (
            ["samples.statistics=yes"],
            "'samples.statistics' is 'yes'. It must be true or false, or mapping from field to the number of its axis.",
        ),
        (
            ["samples.statistics.u=0.5"],
            "'samples.statistics.u' is 0.5. It must be true or false, or mapping from field to the number of its axis.",
        ),
        (
            ["samples.statistics=true", "fields.u.dtype=bool"],
            "'samples.statistics' is given, but no field has statistics: none of bool, complex or "
            "`statistics: false` has. Remove it.",
        ),
        (
            ["samples.statistics.u=0", "fields.u.dtype=complex64", "fields.v={shape: []}"],
            "'samples.statistics.u': the field has no statistics, because fields of complex64 have none. Remove it.",
        ),
        (
            ["samples.statistics.u=0", "fields.u.statistics=false", "fields.v={shape: []}"],
            "'samples.statistics.u': the field has no statistics, because 'fields.u.statistics' is false. Remove it.",
        ),
        (
            ["fields.u={shape: [4], dtype: complex128, statistics: true}"],
            "'fields.u.statistics' is true, but fields of complex128 have no statistics. Remove the key.",
        ),
        (["samples.window=0"], "'samples.window' is 0. It must be a whole number, at least 1, at most 1024."),
        (
            ["samples.window=4", "samples.stride=2", "samples.run=5"],
            "'samples.run' is 5. It must be at least (window - 1) x stride, 6: raise it, or leave it out.",
        ),
        (
            ["samples.window=4", "buffer.capacity=11", "buffer.watermark=3"],
            "'buffer.capacity' is 11, a number of steps. Windows of 4 steps with 'buffer.watermark' 3 need 12. Raise "
            "it, or lower the watermark.",
        ),
        (
            ["samples.window=4", "buffer.policy=firo", "buffer.capacity=15", "buffer.watermark=3"],
            "'buffer.capacity' is 15, a number of steps. Windows of 4 steps with 'buffer.watermark' 3 need 16. Raise "
            "it, or lower the watermark.",
        ),
    ],
)
def test_invalid_sample_settings_are_refused(path: Path, given: list[str], sentence: str) -> None:
    with pytest.raises(JobFileError) as refused:
        load_job(path, given)
    assert sentence in str(refused.value)
