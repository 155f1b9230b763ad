"""Batches of every kind that the real library draws for a stand-in device: each sample once, counted in time."""

import ctypes
from typing import Any

import numpy as np
import pytest
import torch
from alone_job import SIMULATIONS, STEPS, Samples, alone, begin, plan_of
from fake_device import MODES, FakeDevice

from mpidata.errors import StreamError
from mpidata.native import structures
from mpidata.native.constants import CHECKPOINT, ERR_AGAIN, SUCCESS
from mpidata.run.plan import Field
from mpidata.trainer.dataset import MPIStreamDataset
from mpidata.trainer.standalone.trainer import AloneTrainer

MESH = (Field("xy", "float32", ("nodes", 2)), Field("u", "float64", ("nodes",)), Field("g", "bfloat16", (3,)))
BOX = (Field("u", "float32", (40,)), Field("n", "int16", ()))
ONCE = (Field("mesh", "float32", (3,), per_simulation=True), *BOX)
SIZE = 4
PATCHED = pytest.MonkeyPatch()


def begin_on(device: FakeDevice, fields: tuple[Field, ...], pages: bool = False, **plan: Any) -> tuple[Samples, Any]:
    """Start the trainer of this process, whose streams go to the device."""
    samples = Samples(plan_of(fields, **plan), {"nodes": 1}, {"nodes": 9})
    PATCHED.setattr("mpidata.trainer.batches.device_prefetch.choose_device", lambda *_, **__: device)
    PATCHED.setattr("mpidata.trainer.batches.pages.buffer_is_page_locked", lambda plan: pages)
    return samples, begin(samples)


def drawn(trainer: AloneTrainer) -> int:
    figures = structures.Statistics()
    assert trainer.library.mpidata_trainer_statistics(ctypes.byref(figures)) == 0
    return int(figures.drawn)


def plain(value: torch.Tensor) -> torch.Tensor:
    return value.values() if value.is_nested else value


def check(samples: Samples, batch: dict[str, torch.Tensor], kind: str) -> list[tuple[int, int]]:
    """Compare a batch with the given samples; return the simulations and steps of its samples."""
    of = list(zip(batch["simulation"].tolist(), batch["step"].tolist(), strict=True))
    steps = [samples.of(*one) for one in of]
    for number, field in enumerate(samples.plan.fields):
        if field.per_simulation:
            continue
        values = [torch.from_numpy(step.fields[number]) for step in steps]
        if field.dtype == "bfloat16":
            values = [value.view(torch.bfloat16) for value in values]
        expected = torch.cat(values) if field.length and kind != "padded" else None
        if field.length and kind == "padded":
            expected = torch.nn.utils.rnn.pad_sequence(values, batch_first=True)
        assert torch.equal(plain(batch[field.name]), torch.stack(values) if expected is None else expected)
    assert batch["parameters"].tolist() == [step.parameters.tolist() for step in steps]
    return of


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("policy", ["fifo", "fifo, page-locked", "firo", "reservoir"])
@pytest.mark.parametrize("kind", ["packed", "padded", "nested", "alike"])
@alone
def test_batches_of_each_kind_are_delivered_and_counted(kind: str, policy: str, mode: str) -> None:
    device = FakeDevice(mode)
    policy, _, locked = policy.partition(", ")
    plan = {"policy": policy, "capacity": 12, "watermark": 1 if policy == "fifo" else 4}
    samples, trainer = begin_on(device, BOX if kind == "alike" else MESH, bool(locked), **plan)
    stream = MPIStreamDataset(SIZE, device="cuda", **({} if kind == "alike" else {"ragged": kind}))
    seen: list[tuple[int, int]] = []
    for number, batch in enumerate(stream, 1):
        assert all(device.has(plain(value)) for value in batch.values())
        if kind == "nested":
            assert batch["xy"].offsets() is batch["u"].offsets() and device.has(batch["u"].offsets())
        assert drawn(trainer) == trainer.drawn == number
        device.wait_for(device.copied())
        device.training.run_to(device.training.given)
        seen += check(samples, batch, kind)
    if policy == "reservoir":
        assert set(seen) == {(i, s) for i in range(SIMULATIONS) for s in range(STEPS)}
    else:
        rest = SIMULATIONS * STEPS % SIZE
        assert len(seen) == len(set(seen)) == SIMULATIONS * STEPS - rest


@pytest.mark.parametrize("locked", [True, False])
@pytest.mark.parametrize("views", [True, False])
@alone
def test_constants_are_kept_as_long_as_their_batch(views: bool, locked: bool) -> None:
    device = FakeDevice()
    samples, trainer = begin_on(device, ONCE, locked, policy="fifo", capacity=8, watermark=1)
    trainer.draw_page = pytest.fail  # type: ignore[method-assign]  # its page would not return before the batch is gone
    stream = MPIStreamDataset(SIZE, device="cuda", constants="apart" if views else "batch")
    batches = iter(stream)
    batch = next(batches)
    device.finish()
    ids = batch["simulation"].tolist()
    expected = [samples.of(simulation, 0).fields[0].tolist() for simulation in ids]
    if not views:
        assert device.has(batch["mesh"]) and batch["mesh"].tolist() == expected
        return
    for _ in batches:
        assert "mesh" not in batch
        assert [stream.constants(simulation)["mesh"].tolist() for simulation in ids] == expected
    del batch
    with pytest.raises(StreamError, match=f"holds no sample of simulation {ids[0]}"):
        stream.constants(ids[0])


@alone
def test_prefetched_batch_of_a_left_loop_goes_to_the_next_and_counts_once() -> None:
    device = FakeDevice()
    samples, trainer = begin_on(device, BOX, policy="fifo", capacity=12, watermark=1)
    seen: list[tuple[int, int]] = []
    for epoch in range(1, 40):
        for batch in MPIStreamDataset(SIZE, device="cuda"):
            device.finish()
            seen += check(samples, batch, "alike")
            assert drawn(trainer) == epoch
            break
        if trainer.ended:
            break
    assert len(seen) == len(set(seen)) == SIMULATIONS * STEPS - SIMULATIONS * STEPS % SIZE


@alone
def test_stream_ends_only_when_the_loop_reaches_its_end() -> None:
    """A draw ahead does not count: a script that leaves its loop at the last batch but one has stopped the job."""
    device = FakeDevice()
    samples, trainer = begin_on(device, BOX, policy="fifo", capacity=12, watermark=1)
    stream = MPIStreamDataset(SIZE, device="cuda", device_prefetch=2)
    batches = SIMULATIONS * STEPS // SIZE
    for number, _ in enumerate(stream, 1):
        assert not trainer.ended and not trainer.is_done()
        if number == batches - 1:
            break
    assert drawn(trainer) == batches - 1 and not stream.over
    assert [number for number, _ in enumerate(stream)] == [0]
    assert stream.over and trainer.ended and drawn(trainer) == batches


@alone
def test_batch_drawn_ahead_counts_only_after_the_loop_received_it() -> None:
    samples, trainer = begin_on(FakeDevice(), BOX, policy="fifo", capacity=12, watermark=1)
    library = trainer.library
    assert library.mpidata_trainer_ahead(-1.0) == ERR_AGAIN  # the batch size is not known yet
    MPIStreamDataset(SIZE, device="cuda")
    assert library.mpidata_trainer_ahead(5.0) == SUCCESS == library.mpidata_trainer_ahead(-1.0)
    assert library.mpidata_trainer_had_ahead() not in (SUCCESS, ERR_AGAIN, CHECKPOINT)
    u, n, parameters = np.empty((SIZE, 40), np.float32), np.empty(SIZE, np.int16), np.empty((SIZE, 2))
    time, step, simulation = np.empty(SIZE), np.empty(SIZE, np.int64), np.empty(SIZE, np.int64)
    fields = (ctypes.c_void_p * 2)(u.ctypes.data, n.ctypes.data)
    rest = [array.ctypes.data for array in (parameters, time, step, simulation)]
    assert library.mpidata_trainer_draw(fields, *rest, -1.0) == SUCCESS and drawn(trainer) == 0
    assert u[0].tolist() == samples.of(int(simulation[0]), int(step[0])).fields[0].tolist()
    assert library.mpidata_trainer_had_ahead() == SUCCESS and drawn(trainer) == 1
