"""What trainers publish reaches the inference ranks, also late ones; an answer names its version."""

import json
import signal
from typing import Any

import pytest
from jobs import PROGRAMS, JobFolder, Result, python
from test_inference import events, inference_ranks
from waiting import wait_until

NET = """
import torch

def answer(inputs, weights):
    x, weight = inputs["x"], weights["weight"]
    version = int(weights["step"])
    assert weight[0] == version and weights["none"].shape == (0, 3) and weights["none"].dtype == torch.int16
    y = x[:, None] + weights["bias"].flatten().double() + 10 * weight[0]
    assert bool(weights["odd"]) == bool(version % 2) and weights["odd"].dtype == torch.bool
    assert weights["half"].dtype == torch.bfloat16 and weights["half"].tolist() == [version % 8 + 0.5] * 2
    return {"y": y, "flag": weights["odd"].expand(len(x)).clone()}
"""


def write(folder: JobFolder, until: int = 3, solvers: dict[str, Any] | None = None, **more: Any) -> None:
    """Write a job; `more`: keys, and options of published/trainer.py."""
    keys = {name: more.pop(name) for name in ("trainers", "inference") if name in more}
    if isinstance(more.get("checkpoint"), dict):
        keys["checkpoint"] = more.pop("checkpoint")
    folder.write(net=NET)
    trainers = {"program": python("published/trainer.py", json.dumps({"torch": True, **more}))}
    folder.job(
        trainers=trainers | keys.pop("trainers", {}),
        solvers={"program": python("published/asks.py", until), **(solvers or {})},
        inference={"function": "net:answer", **keys.pop("inference", {})},
        **keys,
    )


def check(result: Result, until: int = 3) -> None:
    assert result.status == 0, result.logs()
    assert result.summary["simulations"]["complete"] == 4, result.logs()
    used = [line for line in result.marked() if "versions were used" in line]
    assert used and int(used[0].split()[7]) >= until, result.logs()


def test_answers_match_their_reported_version(folder: JobFolder) -> None:
    """Nothing is answered before the first version exists."""
    write(folder, solvers={"groups": 2, "ranks_per_group": 2})
    check(folder.run())


@pytest.mark.full
@pytest.mark.parametrize("elements", [100, 2_000_000])
def test_answers_are_correct_while_versions_change_quickly(folder: JobFolder, elements: int) -> None:
    write(folder, 200, every=1, publishes=20, elements=elements, inference={"ranks": 2}, solvers={"groups": 2})
    check(folder.run(timeout=150), 200)


@pytest.mark.full
def test_answers_match_their_version_with_spawned_groups(folder: JobFolder) -> None:
    write(folder, trainers={"ranks": 2}, solvers={"groups": 2, "start": "spawn"})
    check(folder.run(timeout=90))


@pytest.mark.full
@pytest.mark.parametrize("spares", [0, 1])
@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGSTOP])
def test_replacement_inference_rank_gets_the_newest_version(
    folder: JobFolder, spares: int, way: signal.Signals
) -> None:
    write(folder, 20, pause_s=0.02, inference={"spares": spares, "timeout_s": 3})
    process = folder.start()
    wait_until(lambda: '"inference_joined"' in events(folder), timeout_s=40, alive=process)
    wait_until(lambda: len(inference_ranks(folder.path)) == 1 + spares, alive=process)
    inference_ranks(folder.path)[0].send_signal(way)
    result = folder.finish(process, 90, 0)
    folder.assert_nothing_left()
    check(result, 20)
    assert result.summary["inference"]["lost"] == 1, result.logs()


@pytest.mark.full
@pytest.mark.parametrize("of_file", [False, True])
def test_a_resume_answers_with_the_version_of_the_checkpoint(folder: JobFolder, of_file: bool) -> None:
    more = {"kept": True, "every": 3, "pause_s": 0.05, "dies": [0, 20]}
    if of_file:
        more["inference"] = {"weights": "net.pt"}
    write(folder, 12, checkpoint={"every_s": 0.3}, **more)
    if of_file:
        write_weights(folder, 12)
    first = folder.run()
    assert first.status == 1 and first.run is not None, first.logs()
    before = sum(line.startswith("first") for line in first.marked("solver"))
    second = folder.resume(first.run)
    assert second.status == 0, second.logs()
    begins = [int(line.split()[-1]) for line in second.marked() if line.startswith("begins with")]
    versions = [int(line.split()[1]) for line in second.marked("solver") if line.startswith("first")][before:]
    assert versions and min(versions) >= begins[-1] > 0, second.logs()


@pytest.mark.full
@pytest.mark.parametrize("start", ["split", "spawn"])
def test_another_trainer_publishes_after_the_first_dies(folder: JobFolder, start: str) -> None:
    trainers = {"ranks": 2, "elastic": True}
    write(folder, 6, {"start": start}, trainers=trainers, dies=[0, 5], checkpoint=False)
    result = folder.run(timeout=90)
    assert result.status == 0 and result.summary["lost_trainers"] == [0], result.logs()


def write_weights(folder: JobFolder, until: int) -> None:
    """Write the file of `inference.weights`, with the values of version 0."""
    torch = pytest.importorskip("torch")
    bias = torch.arange(6.0).reshape(2, 3)
    weights = {"weight": torch.zeros(1).double(), "bias": bias, "step": torch.tensor(0), "odd": torch.tensor(False)}
    weights |= {"none": torch.empty(0, 3, dtype=torch.int16), "half": torch.full((2,), 0.5, dtype=torch.bfloat16)}
    torch.save(weights, folder.path / "net.pt")
    source = (PROGRAMS / "published/asks.py").read_text()
    folder.write(asks=source.replace("assert version > 0, version", "assert version >= before"))
    folder.change_job(solvers={"program": ["python", "asks.py", str(until)]})


@pytest.mark.full
def test_weights_file_is_used_until_the_first_publish(folder: JobFolder) -> None:
    """The first publish then replaces them."""
    write(folder, inference={"weights": "net.pt"})
    write_weights(folder, 3)
    check(folder.run())
