"""Small samples share messages if that delays nothing that anyone waits for."""

import pytest
from jobs import JobFolder, python


@pytest.mark.parametrize("elements", [16, 2048])  # in one message with its header; larger than a transport's
def test_packing_does_not_delay_samples_that_the_solver_waits_for(folder: JobFolder, elements: int) -> None:
    (folder.path / "there").mkdir()
    folder.job(
        trainers={"program": python("trainers/timing/notes_arrivals.py")},
        solvers={"program": python("solvers/timing/waits_for_arrivals.py", elements)},
        parameters={"count": 3, "space": {"alpha": [0, 1]}},
        fields={"u": {"dtype": "float32", "shape": [elements]}},
        buffer={"capacity": 8},
    )
    result = folder.run()
    assert result.status == 0, result.logs()
    assert sum(1 for _ in (folder.path / "there").iterdir()) == 60
