"""In the gest-api example, the generator chooses the simulations, and receives each one that was trained on."""

import importlib
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from example_copy import EXAMPLES, copy_example
from jobs import BIN, JobFolder, Result

SPACE = {
    "a": [0.0, 2.0],
    "n": {"integers": [1, 3]},
    "c": {"choices": [0.5, 1.5]},
    "t": {"choices": ["x", "y"]},
    "v": {"value": 3.0},
}


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(EXAMPLES / "gest"))
    yield importlib.import_module("search")
    for name in ("search", "adapter"):
        sys.modules.pop(name, None)


def losses(*means: float, count: int = 8) -> dict[str, np.ndarray]:
    return {"excess": np.array(means), "count": np.full(len(means), count)}


def test_generator_gets_the_results_of_its_points_under_their_ids(search) -> None:
    sampler = search.Search(SPACE, seed=1)
    table = sampler.sample(4)
    assert table.shape == (4, 5) and set(table[:, 1]) <= {1, 2, 3} and set(table[:, 2]) <= {0.5, 1.5}
    assert set(table[:, 3]) <= {0, 1} and set(table[:, 4]) == {3.0}
    sampler.observe(np.array([1, 2]), table[[1, 2]], losses(5.0, 7.0))
    results = sampler.generator.results
    assert [(result["_id"], result["loss"], result["v"]) for result in results] == [(2, 7.0, 3.0), (1, 5.0, 3.0)]
    assert [results[0][name] for name in "anct"] == table[2, :4].tolist()
    sampler.observe(np.array([2, 3]), table[[2, 3]], losses(9.0, 1.0))
    assert sorted(result["_id"] for result in sampler.generator.results) == [1, 2, 3]  # each one once
    sampler.observe(np.array([0]), table[[0]], losses(9.0, count=7))
    assert len(sampler.generator.results) == 3


def test_generator_resumes_from_its_state(search) -> None:
    one, other = search.Search(SPACE, seed=1), search.Search(SPACE, seed=2)
    table = one.sample(6)
    one.observe(np.arange(6), table, losses(*range(6)))
    other.load_state_dict(pickle.loads(pickle.dumps(one.state_dict())))
    assert (one.sample(8) == other.sample(8)).all()


def test_missing_points_are_an_error(search) -> None:
    sampler = search.Search(SPACE, seed=1)
    sampler.generator.suggest = lambda count: []
    with pytest.raises(ValueError, match=r"suggest\(3\) returned 0 points"):
        sampler.sample(3)


def test_unchanged_example_completes(tmp_path: Path) -> None:
    result = run_example(tmp_path, "parameters.count=20")
    drawn = parameters(result)[:20]
    assert result.summary["simulations"]["complete"] == 28, result.summary
    assert set(drawn["height"]) == {1.0} and set(drawn["waves"]) <= {1, 2, 3}


def test_generator_draws_points_with_large_losses(tmp_path: Path) -> None:
    copy_example("gest", tmp_path)
    # The model never learns more than one wave, so the order of the losses does not depend on the timing. With fifo,
    # the losses of all but the last few simulations are known at each draw.
    script = (tmp_path / "train.py").read_text()
    known = script.replace("each.detach()", 'torch.where(batch["parameters"][:, 2] > 1, 1.0, 0.0)')
    assert known != script
    (tmp_path / "train.py").write_text(known)
    result = run_example(
        tmp_path, "parameters.count=90", "buffer.policy=fifo", "buffer.capacity=32", "buffer.watermark=0"
    )
    drawn = parameters(result)[:90]
    bred, anywhere = drawn["waves"][31::2], drawn["waves"][30::2]
    assert set(anywhere) == {1, 2, 3} and len(bred) == 30 and (bred > 1).all(), bred


def run_example(folder: Path, *settings: str) -> Result:
    if not (folder / "gest.yaml").exists():
        copy_example("gest", folder)
    command = [str(BIN / "mpidata"), "run", "gest.yaml", "--set", "name=job"]
    for setting in settings:
        command += ["--set", setting]
    result = JobFolder(folder).run(command=command, timeout=90)
    assert result.status == 0, result.logs()
    return result


def parameters(result: Result) -> np.ndarray:
    rows = np.genfromtxt(result.run / "parameters.csv", delimiter=",", names=True, usecols=range(5))
    return rows[np.argsort(rows["simulation"])]
