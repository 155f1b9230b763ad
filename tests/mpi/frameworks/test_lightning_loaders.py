"""Lightning with datasets on loaders: both have the same epochs, and overfit_batches repeats the same batches."""

from collections import Counter

import pytest
from jobs import JobFolder, python

SAMPLES, SIZE = 40, 4


@pytest.mark.full
@pytest.mark.parametrize("trainers", [1, 2])
def test_epochs_use_each_row_once_and_overfit_batches_repeats_the_same(folder: JobFolder, trainers: int) -> None:
    folder.variables = {"STEPS": "8"}
    folder.job(
        trainers={"ranks": trainers, "program": python("trainers/frameworks/overfits_lightning.py")},
        solvers={"function": "functions.steps:simulate"},
        loaders={"ranks": 1},
        parameters={"count": 2, "space": {"alpha": [0.0, 1.0]}},
    )
    result = folder.run(timeout=150)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    found = folder.read_notes("used", trainers)
    for name in ("share", "files", "files in a loader"):
        for each in found:
            overfit, whole = each[name]
            epochs = [[batch for epoch, batch in overfit if epoch == number] for number in range(3)]
            assert epochs[0] == epochs[1] == epochs[2] == [batch for _, batch in whole[:2]], name
        for number in range(2):
            rows = [row for each in found for epoch, batch in each[name][1] if epoch == number for row in batch]
            assert Counter(rows) == Counter(range(SAMPLES)), name
        assert found[0][name][1] == found[0]["files"][1], "the same seed, epoch and place: the same row"
    assert all("a stream gives each sample once" in each["stream"] for each in found)
