"""What is published reaches the sampler that takes it, and is not older than the losses that it receives."""

import json

from jobs import JobFolder, python


def test_sampler_gets_the_newest_published_arrays(folder: JobFolder) -> None:
    folder.variables = {"STEPS": "4", "SLEEP_S": "0.05", "FIRST": "20"}
    folder.job(
        trainers={"program": python("trainers/learning/publishes.py")},
        solvers={"function": "functions.steps:simulate", "groups": 2},
        parameters={"count": 60, "sampler": "samplers.reader:Reader", "space": {"alpha": [0.0, 1.0]}},
    )
    result = folder.run()
    assert result.status == 0, result.logs()
    lines = [json.loads(line) for line in (folder.path / "observed.txt").read_text().splitlines()]
    versions = [line["version"] for line in lines]
    assert len(lines) > 2 and versions == sorted(versions) and versions[-1] > 20, lines
    assert not any(line.get("behind") for line in lines), lines
