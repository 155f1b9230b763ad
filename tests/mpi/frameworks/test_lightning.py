"""Lightning with the job's checkpoints, and with validation samples."""

import re
import signal
from collections import Counter

import pytest
from interrupted import SIMULATIONS, STEPS, interrupt
from jobs import JobFolder


@pytest.mark.full
@pytest.mark.parametrize(
    ("how", "trainers", "by"),
    [
        ("registered", 1, signal.SIGTERM),
        ("registered", 2, signal.SIGTERM),
        ("registered", 2, signal.SIGINT),
        # Lightning's own checkpoint is of a later step, and says that the epoch is over.
        ("both", 2, signal.SIGTERM),
        ("both", 1, signal.SIGINT),
    ],
)
def test_resume_restores_the_registered_state(folder: JobFolder, how: str, trainers: int, by: int) -> None:
    result = interrupt(folder, "resumes_lightning.py", trainers, how, by)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    _, resumed, at = result.marked()[-1].split()
    assert 8 <= int(at) <= int(resumed) <= int(at) + 1, "a batch fetched ahead"
    found = folder.read_notes("used", trainers)
    for each in found:
        assert len(each["used"]) == SIMULATIONS * STEPS // trainers - (int(resumed) - int(at)) * 4
    assert max(Counter((i, s) for each in found for i, s in each["used"]).values()) == 1


@pytest.mark.full
@pytest.mark.parametrize("how", ["last", "steps"])
def test_a_checkpoint_of_another_step_is_refused(folder: JobFolder, how: str) -> None:
    result = interrupt(folder, "resumes_lightning.py", 1, how)
    assert result.status == 1, result.logs()
    assert re.search(r"Lightning resumed from a checkpoint of step \d+ \(ckpt_path\), but", result.summary["error"])
