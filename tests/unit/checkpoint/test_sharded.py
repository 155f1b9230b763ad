"""States with sharded tensors, in a process group of one process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from mpidata.checkpoint.files import trainer_file
from mpidata.checkpoint.state import check_stateful, restore_state, save_state
from mpidata.checkpoint.trainer_file import Saved
from mpidata.errors import StreamError


@pytest.fixture(autouse=True)
def group() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]
    yield
    dist.destroy_process_group()


class Model(torch.nn.Module):
    def __init__(self, seed: int, rows: int = 5, parted: bool = True) -> None:
        super().__init__()
        torch.manual_seed(seed)
        weight = torch.randn(rows, 3)
        mesh = init_device_mesh("cpu", (1,))
        self.weight = torch.nn.Parameter(distribute_tensor(weight, mesh, [Shard(0)]) if parted else weight)
        self.bias = torch.nn.Parameter(torch.randn(3))


def train(model: Model, optimizer: torch.optim.Optimizer, steps: int = 2) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        for weight in model.parameters():
            weight.grad = torch.ones_like(weight)
        optimizer.step()


def whole(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def equal(one: Model, other: Model) -> bool:
    return all(torch.equal(whole(a), whole(b)) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def write(folder: Path, saved: dict[str, Saved]) -> dict[str, Saved]:
    """Write the states to a trainer's file; return them without the contents of sharded ones."""
    with h5py.File(folder / trainer_file(0), "w") as file:
        for name, state in saved.items():
            file[f"state/{name}"] = np.frombuffer(state.contents, np.uint8)
    return {name: Saved(b"", state.layout) if state.layout else state for name, state in saved.items()}


def objects(seed: int, **arguments: Any) -> dict[str, Any]:
    model = Model(seed, **arguments)
    return {"optimizer": torch.optim.Adam(model.parameters(), lr=0.1 / (1 + seed)), "model": model}


@pytest.mark.parametrize("parted", [True, False])
def test_sharded_model_and_optimizer_are_restored(tmp_path: Path, parted: bool) -> None:
    before, after = objects(0), objects(1, parted=parted)
    train(**before)
    saved = save_state(before)
    assert saved["model"].layout and saved["optimizer"].layout
    restore_state(after, write(tmp_path, saved), tmp_path)
    assert equal(before["model"], after["model"])
    assert after["optimizer"].param_groups[0]["lr"] == 0.1
    train(**before)
    train(**after)
    assert equal(before["model"], after["model"])


def test_saving_an_optimizer_before_its_first_step_leaves_it_unchanged(tmp_path: Path) -> None:
    before, after = objects(0), objects(1)
    saved = save_state(before)
    assert not before["optimizer"].state and not saved["optimizer"].layout
    restore_state(after, write(tmp_path, saved), tmp_path)
    train(**before)
    train(**after)
    assert equal(before["model"], after["model"])


def test_user_object_with_sharded_tensors_in_its_state_is_restored(tmp_path: Path) -> None:
    class Both:
        def __init__(self, of: dict[str, Any]) -> None:
            self.of = of

        def state_dict(self) -> dict[str, Any]:
            model, optimizer = get_state_dict(self.of["model"], self.of["optimizer"])
            return {"of": [model, optimizer], "epoch": 3}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            model, optimizer = state["of"]
            assert state["epoch"] == 3
            set_state_dict(self.of["model"], self.of["optimizer"], model_state_dict=model, optim_state_dict=optimizer)

    before, after = objects(0), objects(1)
    train(**before)
    saved = save_state({"both": Both(before)})
    assert saved["both"].layout
    restore_state({"both": Both(after)}, write(tmp_path, saved), tmp_path)
    train(**before)
    train(**after)
    assert equal(before["model"], after["model"])


def test_states_without_sharded_tensors_have_no_layout() -> None:
    of = objects(0, parted=False)
    train(**of)
    assert not any(state.layout for state in save_state(of).values())


def test_sharded_optimizer_without_its_model_is_refused() -> None:
    of = objects(0)
    check_stateful(of)
    with pytest.raises(StreamError, match=r"parameters of optimizer.*register\(model=model, optimizer=optimizer\)"):
        check_stateful({"optimizer": of["optimizer"]})


def test_sharded_state_of_another_model_is_refused(tmp_path: Path) -> None:
    before = objects(0)
    train(**before)
    saved = write(tmp_path, save_state(before))
    with pytest.raises(StreamError, match="the state of model in the checkpoint does not fit.*weight"):
        restore_state({"model": Model(1, rows=6), "optimizer": before["optimizer"]}, saved, tmp_path)
    (tmp_path / trainer_file(0)).unlink()
    with pytest.raises(StreamError, match="trainer-0000.h5 cannot be read"):
        restore_state(before, saved, tmp_path)
