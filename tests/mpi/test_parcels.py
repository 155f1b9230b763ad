"""Requests of trainers and parcels of loaders arrive at any size, between any ranks, also if a loader dies."""

import pytest
from jobs import JobFolder, python


@pytest.mark.parametrize("start", ["split", pytest.param("spawn", marks=pytest.mark.full)])
def test_parcels_arrive_complete_if_a_loader_dies_while_sending_one(folder: JobFolder, start: str) -> None:
    folder.write(sitecustomize="import sys\nif 'mpidata.loader' in sys.orig_argv:\n    import loaders.echo_loader\n")
    trainers = {"ranks": 2, "program": python("trainers/loaders/asks_loaders.py")}
    folder.write_job({"trainers": trainers, "loaders": {"ranks": 2, "spares": 1, "start": start}})
    result = folder.run()
    assert result.status == 0, result.logs()
    for trainer in range(2):
        assert result.marked("trainer", trainer) == ["exact ['number 11']"]
