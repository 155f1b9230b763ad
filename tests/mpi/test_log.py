"""`log` records every reported value of a running job with its batch."""

from collections import Counter

from jobs import JobFolder, python, read_lines
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def test_every_reported_value_is_logged_with_its_batch(folder: JobFolder) -> None:
    folder.variables = {"STEPS": "100"}
    folder.job(
        trainers={"ranks": 2, "program": python("trainers/reports.py")},
        solvers={"groups": 2, "function": "functions.steps:simulate"},
        log=["tensorboard", "loggers.tracker:Tracker"],
    )
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.run is not None and result.output.count("no network") == 1
    drawn = Counter[int]()
    for batches in result.summary["batches"]["per_trainer"]:
        drawn.update(range(1, batches + 1))
    *lines, last = read_lines(result.run / "curves")
    assert last == ["complete", 2]
    told = Counter((batch, name, value) for batch, values in lines for name, value in values.items())
    expected = Counter[tuple[int, str, float]]()
    for batch, times in drawn.items():
        for name, value in (("number", batch), ("number", -batch), ("half", batch / 2)):
            expected[batch, name, value] = times
    assert told == expected and sum(told.values()) > 500
    found = EventAccumulator(str(result.run / "tensorboard"), size_guidance={"scalars": 0}).Reload()
    values = Counter((each.step, name, each.value) for name in ("number", "half") for each in found.Scalars(name))
    assert values == expected
    assert [path.name for path in (result.run / "pictures").iterdir()] == ["batches-1.png"]
    assert {image.step for image in found.Images("batches")} == {1}
