"""Resuming a run: from where, and what happens to its folder."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from mpidata.config import Job, load_job
from mpidata.config.base import FIXED as FIXED_KEY
from mpidata.config.describe import models
from mpidata.errors import JobFileError, LaunchError
from mpidata.launch.starting.folder.prepare import prepare_run
from mpidata.launch.starting.folder.resume import look_at, make_ready
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.scale_requests import Answer, answer, ask

JOB = """\
name: rod
trainers: {ranks: 2, program: [python, train.py]}
solvers: {groups: 2, program: [./heat2d]}
parameters: {count: 8, space: {alpha: [0.01, 0.1]}}
fields: {u: {shape: [4]}}
"""


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    (tmp_path / "train.py").touch()
    (tmp_path / "heat2d").touch(mode=0o755)
    (tmp_path / "job.yaml").write_text(JOB)
    prepared, _, lock = prepare_run(load_job(tmp_path / "job.yaml"))
    os.close(lock)
    return prepared


def test_a_run_without_a_checkpoint_starts_over(run: RunFolder) -> None:
    found = look_at(run.path)
    assert (found.run, found.attempt, found.checkpoint, found.problems) == (run, 2, 0, [])
    assert found.sentence == f"Resuming {run.path}: it has no usable checkpoint, so it starts over."


def test_resume_uses_the_newest_valid_checkpoint(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def newest(checkpoints: Path) -> tuple[int, list[str]]:
        asked.append(checkpoints)
        return 3, ["Checkpoint 4 is damaged."]

    monkeypatch.setattr("mpidata.checkpoint.newest_valid", newest)
    found = look_at(os.path.relpath(run.path))
    assert (found.checkpoint, found.problems) == (3, ["Checkpoint 4 is damaged."]) and asked == [run.checkpoints]
    assert found.sentence == f"Resuming {run.path} from checkpoint 3."
    assert make_ready(found, "ulfm") == Plan.read(run.plan)
    assert (Plan.read(run.plan).checkpoint, Plan.read(run.plan).fault_tolerance) == (3, "ulfm")


def test_resume_archives_results_and_clears_requests_of_the_last_start(run: RunFolder) -> None:
    run.summary.write_text('{"status": "failed"}')
    (run.exits / "rank-0003").touch()
    for path in (run.stop, run.over, run.progress, run.events):
        path.write_text("old")
    run.give_up(0)  # the ranks of group 0 would end at once
    (run.path / "waiting").mkdir()
    (run.path / "waiting" / "for").touch()
    answer(run, ask(run, 1, "loaders", 5), Answer(False, "Yes."))
    (run.logs / "rank-0000-scheduler.log").write_text("old")
    make_ready(look_at(run.path, ["trainers.ranks=3", "solvers={groups: 1, program: [./heat2d]}"]), "none")
    assert sorted(entry.name for entry in run.path.iterdir()) == [
        *("events.jsonl", "exits", "exits-1", "given-up", "job.yaml", "logs", "parameters.csv", "private"),
        *("summary-1.json", "waiting"),
    ]
    assert not run.signs()
    assert (run.path / "exits-1" / "rank-0003").exists() and not any(run.exits.iterdir())
    assert run.events.read_text() == "old" and any(run.logs.iterdir())
    assert sorted(entry.name for entry in run.private.iterdir()) == ["lock", "plan"]
    plan = Plan.read(run.plan)
    assert (plan.attempt, plan.trainers, plan.groups, plan.world) == (2, 3, 1, 5)
    assert load_job(run.job).trainers.ranks == 3


def test_set_aside_simulations_run_again_if_requested(run: RunFolder) -> None:
    event = {"time": 1.0, "event": "set_aside", "simulation": 3}
    run.events.write_text(json.dumps({"event": "start"}) + "\n" + json.dumps(event) + "\n")
    found = look_at(run.path)
    assert found.sentence.endswith(
        "1 simulation that had been set aside will not be run again without --retry-set-aside."
    )
    make_ready(found, "none")
    assert look_at(run.path).set_aside == [3]
    found = look_at(run.path, retry_set_aside=True)
    assert found.sentence.endswith("starts over. 1 simulation that had been set aside will be run again.")
    make_ready(found, "none")
    # Also if the next start died before any rank had joined.
    assert look_at(run.path).set_aside == [] and "set aside" not in look_at(run.path).sentence
    make_ready(look_at(run.path, retry_set_aside=True), "none")
    assert run.events.read_text().count("retry_set_aside") == 1


def test_interrupted_preparation_of_a_resume_can_be_repeated(run: RunFolder) -> None:
    run.exits.rename(run.path / "exits-1")  # interrupted before the plan was written
    assert look_at(run.path).attempt == 2
    (run.path / "summary-1.json").touch()
    make_ready(look_at(run.path), "none")
    make_ready(look_at(run.path), "none")
    assert Plan.read(run.plan).attempt == 3 and (run.path / "exits-2").is_dir()


FIXED = [
    ("seed=1", "seed", "0", "1"),
    ("name=x", "name", '"rod"', '"x"'),
    ("output=x", "output", None, '"x"'),
    ("parameters.count=9", "parameters.count", "8", "9"),
    ("parameters.space={alpha: [0, 1]}", "parameters.space.alpha", None, None),
    ("validation.count=1", "validation.count", "0", "1"),
    ("fields.v={shape: []}", "fields", None, None),
    ("fields.u.dtype=float64", "fields.u.dtype", '"float32"', '"float64"'),
    ("samples.window=3", "samples.window", "1", "3"),
    ("samples={window: 2, stride: 3}", "samples.window", "1", "2"),
    ("samples={window: 2, stride: 3}", "samples.stride", "1", "3"),
    ("samples={window: 2, run: 7}", "samples.run", None, "7"),
    ("samples.statistics=true", "samples.statistics", None, None),
    ("buffer.policy=firo", "buffer.policy", '"reservoir"', '"firo"'),
    ("record={path: other}", "record", "not set", None),
    ("journal=true", "journal", "false", "true"),
]


@pytest.mark.parametrize(("setting", "key", "before", "now"), FIXED)
def test_keys_that_checkpoints_or_files_depend_on_cannot_be_changed(
    run: RunFolder, setting: str, key: str, before: str | None, now: str | None
) -> None:
    files = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    with pytest.raises(JobFileError) as refused:
        look_at(run.path, [setting])
    (sentence,) = [one for one in str(refused.value).splitlines() if f"'{key}'" in one]
    start = f"job.yaml: '{key}' cannot be changed when a run is resumed: it is {before or ''}"
    assert sentence.startswith(start) and f"and {now or ''}" in sentence and str(run.path) in sentence
    assert sentence.endswith("was asked for. Leave it, or start a new run.")
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == files


@pytest.mark.parametrize(
    "setting",
    [
        *("trainers.ranks=3", "solvers.groups=4", "solvers.program=[./heat2d, '1']", "solvers.retries=7"),
        *(
            "buffer.capacity=5000",
            "buffer.tail=repeat",
            "buffer.watermark=3",
            "checkpoint={every_s: 1}",
            "log=[tensorboard]",
        ),
        *("launch.join_timeout_s=9", "slurm.nodes=2", "loaders={ranks: 1}", "solvers={groups: 1, program: [./heat2d]}"),
    ],
)
def test_keys_about_execution_may_be_changed_by_a_resume(run: RunFolder, setting: str) -> None:
    make_ready(look_at(run.path, [setting]), "none")
    assert look_at(run.path).attempt == 3


def declarations(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield all keys of the job file with their declarations."""
    for name, info in model.model_fields.items():
        yield f"{above}{name}", info
        for inner in models(info.annotation):
            yield from declarations(inner, f"{above}{name}.")


def test_every_key_declares_whether_a_resume_may_change_it() -> None:
    all_keys = dict(declarations(Job))
    assert len(all_keys) > 100
    unsaid = [key for key, info in all_keys.items() if FIXED_KEY not in (info.json_schema_extra or {})]
    assert not unsaid, f"declare them by fixed_key or free_key: {unsaid}"


def test_complete_runs_and_other_folders_cannot_be_resumed(run: RunFolder, tmp_path: Path) -> None:
    run.summary.write_text('{"status": "complete"}')
    with pytest.raises(LaunchError, match="is complete, so there is nothing to resume"):
        look_at(run.path)
    with pytest.raises(LaunchError, match="is not a run folder: it has no plan"):
        look_at(tmp_path)
    run.summary.write_text('{"status": "stopped"}')
    assert look_at(run.path).attempt == 2


def test_running_run_is_locked_against_a_second_start(run: RunFolder) -> None:
    lock = run.hold()
    with pytest.raises(LaunchError, match="is still running. Wait for its end, or stop it."):
        run.hold()
    os.close(lock)
    os.close(run.hold())
