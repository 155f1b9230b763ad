"""The JSON documents of a run folder: those of mpidata are read, and a sentence names the key of a wrong value."""

import json
from pathlib import Path
from typing import Any

import pytest

from mpidata.run.documents.documents import EVENT, JOB, METRICS, PROGRESS, SUMMARY, Lines, read_document
from mpidata.run.documents.json_shape import Items, Keys, Kind, Shape, Values
from mpidata.run.event_log import as_json
from mpidata.scheduler.figures.summary import Conclusion, Figures
from mpidata.scheduler.simulations import Simulations

FIX = "Restore the file, or use the version of mpidata that wrote it."


SHAPES: dict[str, Shape] = {"progress": PROGRESS, "summary": SUMMARY, "metrics": METRICS}


def written(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what the scheduler writes of a job with solvers and loaders."""
    figures, simulations = Figures(2, 100), Simulations(5, 2)
    figures.report("loss", float("nan"))
    figures.report("loss", 1e300)
    figures.lost_trainers.append(1)
    for name, value in (("epoch", 1.0), ("parts", 3.0), ("counted", 3.0), ("read", 1.0)):
        figures.loaded.take(0, name, value)
    ended: Conclusion = {"status": "failed", "error": "It failed.", "reason": None}
    documents = {
        "progress": figures.progress(simulations, 2.0),
        "summary": figures.summary(folder, ended, simulations, None, 2.0),
        "metrics": {"time": 1.7e9, **figures.metrics(simulations, 2.0)},
    }
    return {name: json.loads(as_json(document)) for name, document in documents.items()}


def test_what_the_scheduler_writes_is_read(tmp_path: Path) -> None:
    for name, document in written(tmp_path).items():
        shape = SHAPES[name]
        assert shape.fault(document) is None
        path = tmp_path / "document.json"
        path.write_text(json.dumps(document))
        assert read_document(path, shape) == (document, "")
    assert read_document(tmp_path / "none.json", SUMMARY) == ({}, "")


@pytest.mark.parametrize(
    ("name", "keys", "value", "clause"),
    [
        ("progress", "samples", None, "'samples' is null, not an object"),
        ("progress", "samples.per_second", "x", "'samples.per_second' is \"x\", not a number of at most 1e15"),
        ("progress", "simulations.requested", True, "'simulations.requested' is true, not a whole number from 0"),
        ("progress", "simulations.complete", 2**70, f"'simulations.complete' is {2**70}, not a whole number from 0"),
        ("progress", "seconds", 1e308, "'seconds' is 1e+308, not a number of at most 1e15"),
        ("progress", "seconds", float("nan"), "'seconds' is NaN, not a number of at most 1e15"),
        ("progress", "fill", [0.5], "'fill' and 'batches' differ in length"),
        ("progress", "report.loss", [], "'report.loss' is [], not a finite number or null"),
        ("progress", "loaded.reading", {"parts": 1}, "'loaded.reading.counted' is missing"),
        ("progress", "loaded", {"epoch": 1}, "'loaded.samples' is missing"),
        ("summary", "status", {}, "'status' is {}, not a text"),
        ("summary", "batches.per_trainer", [1, {}], "'batches.per_trainer[1]' is {}, not a whole number from 0"),
        ("summary", "training.loss", 3, "'training.loss' is 3, not an object"),
        ("metrics", "received", [], "'received' has 0 items instead of 1 or more"),
        ("metrics", "groups.slowest", [[1]], "'groups.slowest[0]' is [1], not a group with its seconds"),
        ("metrics", "waited_s", "x" * 50, f"'waited_s' is \"{'x' * 39}..., not a list"),
    ],
)  # fmt: skip
def test_the_sentence_names_the_key(tmp_path: Path, name: str, keys: str, value: object, clause: str) -> None:
    document = written(tmp_path)[name]
    *above, last = keys.split(".")
    inside = document
    for key in above:
        inside = inside[key]
    inside[last] = value
    path = tmp_path / "document.json"
    path.write_text(json.dumps(document))
    assert read_document(path, SHAPES[name]) == ({}, f"{path} is ignored: {clause}. {FIX}")


@pytest.mark.parametrize("text", ["", '{"status": ', "[" * 100000])
def test_what_is_no_json(tmp_path: Path, text: str) -> None:
    path = tmp_path / "summary.json"
    path.write_text(text)
    assert read_document(path, SUMMARY) == ({}, f"{path} is ignored: it is not a JSON document. {FIX}")
    path.write_text("[1]")
    assert read_document(path, SUMMARY) == ({}, f"{path} is ignored: its content is [1], not an object. {FIX}")


def test_lines_of_other_types_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    good = {"time": 1.0, "event": "overdue", "groups": [1], "trainers": []}
    lines = [good, {"time": "x", "event": "end"}, {"time": 2.0, "event": "start", "groups": [1]}, good]
    path.write_text("\n".join([*map(json.dumps, lines), '{"time": 3.0, "ev']))
    reader = Lines(path, EVENT)
    assert reader.problem == "" and list(reader.read()) == [good, good]
    why = "'time' is \"x\", not a number of at most 1e15"
    assert reader.problem == f"Line 2 of {path} is ignored: {why}. {FIX} So is another line of it."
    assert list(Lines(tmp_path / "none", EVENT).read()) == []


def test_the_job_file_of_a_report() -> None:
    assert (
        JOB.fault({"solvers": None, "loaders": {"ranks": 2}, "parameters": {"space": {"a": {"choices": ["x"]}}}})
        is None
    )
    for job, clause in (
        ({"trainers": {"ranks_per_replica": "x"}}, "'trainers.ranks_per_replica' is \"x\", not a whole number"),
        ({"fields": {"u": {"shape": 3}}}, "'fields.u.shape' is 3, not a list"),
        ({"parameters": {"space": {"a": {"choices": 3}}}}, "'parameters.space.a' is {\"choices\": 3}, not an axis"),
    ):
        assert str(JOB.fault(job)).startswith(clause)


def test_shapes_within_shapes() -> None:
    number = Kind("a number", lambda value: isinstance(value, int))
    shape = Values(Items(Keys({"a": number}, together=("a", "b"))))
    assert shape.fault({"x": [{}, {"a": 1, "b": 2}], "y": []}) is None
    assert shape.fault({"x": [{}, {"a": 1}]}) == "'x[1].b' is missing"
    assert shape.fault({"x": {}}) == "'x' is {}, not a list" and shape.fault(3) == "its content is 3, not an object"
