"""A job that trains on files, without a stream, dies and resumes from its checkpoint: each row once an epoch."""

import json
import random
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from jobs import JobFolder, Result, python, sets
from killing import events_of, job_processes

ROWS, PARTS, TOGETHER, EPOCHS = 500, 5, 12, 3


def write(folder: JobFolder, start: int, trainers: int, loaders: int, every_s: float) -> None:
    program = python("trainers/census/census_files.py", TOGETHER, 0.02, start)
    job = {
        "name": "job",
        "trainers": {"ranks": trainers, "program": program},
        "loaders": {"ranks": loaders},
        "checkpoint": {"every_s": every_s},
    }
    folder.write_job(job)
    parts = folder.path / "parts"
    parts.mkdir(exist_ok=True)
    for number, rows in enumerate(np.array_split(np.arange(ROWS, dtype=np.float64), [40, 160, 170, 400])):
        if start == 1:
            np.save(parts / f"{number}.npy", rows[:, None])


def kill(folder: JobFolder, victim: str, trainers: int, moment: float) -> None:
    """Run the job, and kill one of its processes some time after its first checkpoint."""
    process = folder.start()
    began = time.monotonic()
    while not any(event["event"] == "checkpoint" and event["batch"] > 0 for event in events_of(folder.path)):
        assert process.poll() is None and time.monotonic() < began + 60, folder.finish(process, 0, began)
        time.sleep(0.01)
    time.sleep(moment)
    job_processes(folder.path, victim, trainers)[-1].kill()
    result = folder.finish(process, timeout=60, started=began)
    folder.assert_nothing_left()
    assert result.status == 1 and "--resume" in result.summary["error"], result.logs()


def resume(folder: JobFolder, trainers: int, loaders: int) -> Result:
    program = json.dumps(python("trainers/census/census_files.py", TOGETHER, "0", "2"))
    changed = [f"trainers.ranks={trainers}", f"trainers.program={program}", f"loaders.ranks={loaders}"]
    return folder.resume(folder.path / "runs" / "job" / "1", *sets(*changed), timeout=120)


def check_rows(folder: Path) -> None:
    """Rows of the first start count if they came before the checkpoint, all rows of the second start count."""
    epoch, batches = json.loads((folder / "resumed-2").read_text())
    assert (epoch, batches) > (0, 0)
    seen = [Counter[float]() for _ in range(EPOCHS)]
    for start in (1, 2):
        for path in folder.glob(f"seen-{start}-*"):
            for line in map(json.loads, path.read_text().splitlines()):
                assert start == 1 or (line[0], line[1]) >= (epoch, batches)
                if start == 2 or (line[0], line[1]) < (epoch, batches):
                    seen[line[0]].update(line[2])
    assert seen == [Counter(map(float, range(ROWS)))] * EPOCHS


def check(folder: JobFolder, victim: str, before: tuple[int, int], after: tuple[int, int], moment: float) -> None:
    write(folder, 1, *before, every_s=0.5)
    kill(folder, victim, before[0], moment)
    result = resume(folder, *after)
    assert result.status == 0, result.logs()
    assert result.summary["training"]["step"]["last"] == EPOCHS * -(-ROWS // TOGETHER)
    check_rows(folder.path)


def test_resume_with_fewer_ranks_after_a_trainer_death_reads_each_row_once(folder: JobFolder) -> None:
    check(folder, "trainer", before=(2, 2), after=(1, 1), moment=0.1)


@pytest.mark.full
@pytest.mark.parametrize("victim", ["trainer", "mpirun"])
@pytest.mark.parametrize("seed", range(10))
def test_resume_after_a_death_at_any_moment_reads_each_row_once(folder: JobFolder, victim: str, seed: int) -> None:
    chosen = random.Random(f"{victim} {seed}")
    before, after = ((chosen.choice([1, 2, 3]), chosen.choice([1, 2, 3])) for _ in range(2))
    check(folder, victim, before, after, chosen.uniform(0.0, 0.8))
