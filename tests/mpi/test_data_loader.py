"""mpidata.DataLoader in whole jobs: each index exactly once an epoch, whatever becomes of the loaders."""

import json

import pytest
import yaml
from jobs import JobFolder, Result

SCRIPT = """
import json, os, random, signal, time
import torch, mpidata
from mpidata.trainer.join import join

class Images(torch.utils.data.Dataset):
    def __init__(self, bad=None):
        self.bad = bad
    def __len__(self):
        return 61
    def __getitem__(self, index):
        time.sleep(0.002)
        if index == self.bad:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.full((3, 50, 50), float(index)), index, os.getpid()

def epochs(loader, number, each=lambda processes: None):
    for epoch in range(number):
        seen = []
        for images, labels, processes in loader:
            assert torch.equal(images[:, 0, 0, 0].long(), labels)
            seen += labels.tolist()
            each(processes.tolist())
        print("=>", json.dumps(seen), flush=True)

if __name__ == "__main__":
    me = join().communicator.rank
"""

KILLS = """
    draw, pause = random.Random({seed}), [0]
    ends = [getattr(signal, name) for name in {ends}]
    def each(processes):
        pause[0] -= 1
        if me == 0 and ends and pause[0] < 0:
            os.kill(draw.choice(processes), ends.pop())
            pause[0] = draw.randrange(3, 9)
    epochs(mpidata.DataLoader(Images(), batch_size=2, shuffle=True, share=True), {epochs}, each)
    assert not ends or me
"""

BAD = """
    epochs(mpidata.DataLoader(Images(9), batch_size=4), 2)
"""


def run(folder: JobFolder, script: str, trainers: int = 1, **loaders: object) -> Result:
    folder.write(train=SCRIPT + script)
    program = {"ranks": trainers, "program": ["python", "train.py"]}
    (folder.path / "job.yaml").write_text(yaml.safe_dump({"trainers": program, "loaders": loaders}))
    return folder.run(timeout=100)


def indices(result: Result, trainer: int) -> list[list[int]]:
    lines = result.log("trainer", trainer).splitlines()
    return [json.loads(line[3:]) for line in lines if line.startswith("=> ")]


def check_kills(folder: JobFolder, seed: int, ends: list[str], **loaders: object) -> None:
    script = KILLS.format(seed=seed, ends=ends, epochs=1 + len(ends) // 2)
    result = run(folder, script, trainers=2, ranks=2, timeout_s=1, **loaders)
    assert result.status == 0, result.logs()
    assert result.summary["loaders"]["lost"] == len(ends)
    for one, other in zip(indices(result, 0), indices(result, 1), strict=True):
        assert sorted(one + other) == list(range(61)) and abs(len(one) - len(other)) <= 1


def test_every_index_comes_once_an_epoch_though_a_loader_is_killed(folder: JobFolder) -> None:
    check_kills(folder, 1, ["SIGKILL"], spares=1)


@pytest.mark.full
@pytest.mark.parametrize("start", ["split", "spawn"])
@pytest.mark.parametrize("seed", range(3))
def test_every_index_comes_once_an_epoch_whatever_ends_loaders(folder: JobFolder, seed: int, start: str) -> None:
    spares = {} if start == "spawn" else {"spares": 5}
    check_kills(folder, seed, ["SIGKILL", "SIGSTOP", "SIGTERM", "SIGKILL", "SIGSTOP"], start=start, **spares)


@pytest.mark.full
def test_an_index_that_kills_each_loader_is_left_out_as_far_as_tolerated(folder: JobFolder) -> None:
    result = run(folder, BAD, ranks=1, spares=2, retries=1, tolerate=1)
    assert result.status == 0, result.logs()
    assert indices(result, 0) == [[i for i in range(61) if i != 9]] * 2
    result = run(folder, BAD, ranks=1, spares=2, retries=1, tolerate=0)
    assert result.status != 0 and "index 9 of DataLoader 0" in result.output
