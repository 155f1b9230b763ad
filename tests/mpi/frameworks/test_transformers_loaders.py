"""The Trainer of transformers with datasets on loaders."""

from collections import Counter

import pytest
from jobs import JobFolder, python

SAMPLES = 37


@pytest.mark.full
@pytest.mark.parametrize("given", ["loader", "files"])
@pytest.mark.parametrize("trainers", [1, 2])
def test_resume_in_mid_epoch_uses_the_remaining_batches(folder: JobFolder, given: str, trainers: int) -> None:
    program = python("trainers/frameworks/loaders_transformers.py", given)
    folder.write_job({"name": "job", "trainers": {"ranks": trainers, "program": program}, "loaders": {"ranks": 1}})
    result = folder.run(timeout=150)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    found = folder.read_notes("used", trainers)
    for each in found:
        whole, resumed = each["whole"], each["resumed"]
        assert resumed["batches"] == whole["batches"][each["at"] :] != []
        assert resumed["steps"] == whole["steps"] == len(whole["batches"])
        assert resumed["weight"] == pytest.approx(whole["weight"])
    epoch = len(found[0]["whole"]["batches"]) // 2
    for first in (0, epoch):
        batches = [batch for each in found for batch in each["whole"]["batches"][first : first + epoch]]
        assert Counter(row for batch in batches for row in batch) == Counter(range(SAMPLES))
