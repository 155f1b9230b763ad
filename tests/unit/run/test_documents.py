"""The JSON documents of a run folder: those of mpidata are read, and a sentence names the key of a wrong value."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from mpidata.run.documents.documents import Lines, fault, read_document
from mpidata.run.documents.types import EVENT, JOB, METRICS, PROGRESS, SUMMARY
from mpidata.run.event_log import as_json
from mpidata.scheduler.figures.summary import Conclusion, Figures
from mpidata.scheduler.simulations import Simulations

FIX = "Restore the file, or use the version of mpidata that wrote it."


KINDS: dict[str, TypeAdapter[Any]] = {"progress": PROGRESS, "summary": SUMMARY, "metrics": METRICS}


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


def test_documents_of_the_scheduler_are_read(tmp_path: Path) -> None:
    for name, document in written(tmp_path).items():
        kind = KINDS[name]
        assert fault(document, kind) is None
        path = tmp_path / "document.json"
        path.write_text(json.dumps(document))
        assert read_document(path, kind) == (document, "")
    assert read_document(tmp_path / "none.json", SUMMARY) == ({}, "")


@pytest.mark.parametrize(
    ("name", "keys", "value", "clause"),
    [
        ("progress", "samples", None, "'samples' is null (input should be a valid dictionary)"),
        ("progress", "samples.per_second", "x", "'samples.per_second' is \"x\" (input should be a valid number)"),
        ("progress", "batches", [True], "'batches[0]' is true (input should be a valid integer)"),
        ("progress", "bytes", 2**70, f"'bytes' is {2**70} (input should be less than {2**63})"),
        ("progress", "seconds", 1e308, "'seconds' is 1e+308 (input should be less than or equal to 1000000000000000)"),
        ("progress", "seconds", float("nan"), "'seconds' is NaN (input should be a finite number)"),
        ("progress", "report.loss", [], "'report.loss' is [] (input should be a valid number)"),
        ("progress", "report.loss", 10**400, f"'report.loss' is 1{'0' * 39}... (input should be a valid number)"),
        ("progress", "loaded.reading", {"parts": 1}, "'loaded.reading.counted' is missing"),
        ("progress", "loaded", {"epoch": 1}, "'loaded' is {\"epoch\": 1} (it lacks samples)"),
        ("summary", "status", {}, "'status' is {} (input should be a valid string)"),
        ("summary", "batches.per_trainer", [1, {}], "'batches.per_trainer[1]' is {} (input should be a valid integer)"),
        ("summary", "training.loss", 3, "'training.loss' is 3 (input should be a valid dictionary)"),
        ("metrics", "received", [], "'received' is [] (list should have at least 1 item after validation, not 0)"),
        ("metrics", "groups.slowest", [[1]],
         "'groups.slowest[0]' is [1] (list should have at least 2 items after validation, not 1)"),
        ("metrics", "waited_s", "x" * 50, f"'waited_s' is \"{'x' * 39}... (input should be a valid list)"),
    ],
)  # fmt: skip
def test_message_names_the_invalid_key(tmp_path: Path, name: str, keys: str, value: object, clause: str) -> None:
    document = written(tmp_path)[name]
    *above, last = keys.split(".")
    inside = document
    for key in above:
        inside = inside[key]
    inside[last] = value
    path = tmp_path / "document.json"
    path.write_text(json.dumps(document))
    assert read_document(path, KINDS[name]) == ({}, f"{path} is ignored: {clause}. {FIX}")


@pytest.mark.parametrize("text", ["", '{"status": ', "[" * 100000])
def test_documents_that_are_not_json_objects_are_ignored(tmp_path: Path, text: str) -> None:
    path = tmp_path / "summary.json"
    path.write_text(text)
    assert read_document(path, SUMMARY) == ({}, f"{path} is ignored: it is not a JSON document. {FIX}")
    path.write_text("[1]")
    assert read_document(path, SUMMARY) == (
        {},
        f"{path} is ignored: its content is [1] (input should be a valid dictionary). {FIX}",
    )


def test_lines_with_invalid_types_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    good = {"time": 1.0, "event": "overdue", "groups": [1], "trainers": []}
    lines = [good, {"time": "x", "event": "end"}, {"time": 2.0, "event": "start", "groups": [1]}, good]
    path.write_text("\n".join([*map(json.dumps, lines), '{"time": 3.0, "ev']))
    reader = Lines(path, EVENT)
    assert reader.problem == "" and list(reader.read()) == [good, good]
    why = "'time' is \"x\" (input should be a valid number)"
    assert reader.problem == f"Line 2 of {path} is ignored: {why}. {FIX} So is another line of it."
    assert list(Lines(tmp_path / "none", EVENT).read()) == []


def test_lists_of_trainers_must_have_equal_length(tmp_path: Path) -> None:
    document = {**written(tmp_path)["progress"], "fill": [0.5]}
    assert str(fault(document, PROGRESS)).endswith("(its lists batches, fill, trainers should be equally long)")


def test_keys_of_an_event_are_checked_by_its_kind() -> None:
    start = {"time": 1.0, "event": "start"}
    assert fault(start, EVENT) is None
    assert fault({**start, "groups": [1]}, EVENT) == "'groups' is [1] (input should be a valid integer)"
    assert fault({**start, "event": "overdue", "groups": [1]}, EVENT) is None
    assert fault({**start, "event": {}}, EVENT) == "'event' is {} (input should be a valid string)"
    assert fault({**start, "event": "set_aside"}, EVENT) == "'simulation' is missing"


def test_job_file_of_a_report_is_checked() -> None:
    job: dict[Any, Any] = {"solvers": None, "loaders": {}, "parameters": {"space": {"a": {"choices": ["x"]}}}, 3: 4}
    assert fault(job, JOB) is None
    for job, clause in (
        ({"trainers": {"ranks_per_replica": "x"}}, "'trainers.ranks_per_replica' is \"x\" (input should be a valid"),
        ({"fields": {"u": {"shape": 3}}}, "'fields.u.shape' is 3 (input should be a valid list)"),
        (
            {"parameters": {"space": {"a": {"choices": 3}}}},
            "'parameters.space.a' is {\"choices\": 3} (it should be an axis",
        ),
    ):
        assert str(fault(job, JOB)).startswith(clause)
