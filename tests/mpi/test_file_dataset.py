"""mpidata.FileDataset in whole jobs: each row exactly once an epoch, whatever becomes of the loaders."""

import json

import numpy as np
import pytest
import yaml
from jobs import JobFolder

SIZES = [50, 3, 70, 20, 41]
SCRIPT = """
import json, os, random, signal
import numpy as np
import mpidata
from mpidata.trainer.join import join

def with_process(chunk):
    return {{"y": chunk["y"], "process": np.full(len(chunk["y"]), os.getpid())}}

if __name__ == "__main__":
    draw, ends = random.Random({seed}), [getattr(signal, name) for name in {ends}]
    data = mpidata.FileDataset("parts", 4, transform=with_process, shuffle={shuffle!r}, open_parts=2)
    for epoch in range(3):
        seen = []
        for number, batch in enumerate(data):
            seen += batch["y"].tolist()
            if join().communicator.rank == 0 and ends and number % 11 == 7:
                os.kill(draw.choice(batch["process"].tolist()), ends.pop())
        print("=>", json.dumps(seen), flush=True)
    assert not ends or join().communicator.rank
"""


def check(folder: JobFolder, seed: int, ends: list[str], shuffle: str | None, **loaders: object) -> None:
    parts = folder.path / "parts"
    parts.mkdir()
    for number, (size, end) in enumerate(zip(SIZES, np.cumsum(SIZES).tolist(), strict=True)):
        np.savez(parts / f"{number}.npz", y=np.arange(end - size, end))
    folder.write(train=SCRIPT.format(seed=seed, ends=ends, shuffle=shuffle))
    program = {"ranks": 2, "program": ["python", "train.py"]}
    loaders = {"ranks": 2, "timeout_s": 1, **loaders}
    (folder.path / "job.yaml").write_text(yaml.safe_dump({"trainers": program, "loaders": loaders}))
    result = folder.run(timeout=100)
    assert result.status == 0, result.logs()
    assert result.summary["loaders"]["lost"] == len(ends)
    logs = [result.log("trainer", trainer).splitlines() for trainer in range(2)]
    one, other = ([json.loads(line[3:]) for line in log if line.startswith("=> ")] for log in logs)
    assert len(one) == len(other) == 3
    for some, rest in zip(one, other, strict=True):
        assert sorted(some + rest) == list(range(sum(SIZES)))


def test_every_row_comes_once_an_epoch_though_a_loader_is_killed(folder: JobFolder) -> None:
    check(folder, 1, ["SIGKILL"], "rows", spares=1)


@pytest.mark.full
@pytest.mark.parametrize("shuffle", ["rows", "parts", None])
@pytest.mark.parametrize("start", ["split", "spawn"])
def test_every_row_comes_once_an_epoch_whatever_ends_loaders(folder: JobFolder, shuffle: str, start: str) -> None:
    spares = {} if start == "spawn" else {"spares": 4}
    check(folder, 2, ["SIGKILL", "SIGSTOP", "SIGTERM", "SIGKILL"], shuffle, start=start, **spares)
