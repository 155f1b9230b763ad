"""A trainer's part of a checkpoint: the snapshot within draw, its file, and what the script registers."""

import io
import os
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_library import FakeLibrary, make_plan, make_trainer, memory

from mpidata.checkpoint.files import digest, unfinished
from mpidata.checkpoint.restore import Restored
from mpidata.checkpoint.trainer_file import Saved, TrainerFile
from mpidata.errors import StreamError
from mpidata.native.constants import CHECKPOINT
from mpidata.trainer import join as job
from mpidata.trainer.dataset import MPIStreamDataset

SAMPLES = 5  # 3 in the buffer, one of them never drawn; 1 waiting; 1 for validation


class Library(FakeLibrary):
    """Requests checkpoint 7 at one batch; sample n of the snapshot has n in every element."""

    def __init__(self, plan: Any, at: int = 2) -> None:
        super().__init__(plan)
        self.at = at
        self.ended: list[tuple[int, int, str]] = []
        self.released = 0
        self.go_on = threading.Event()
        self.go_on.set()
        self.write_status = 0

    def mpidata_trainer_draw(self, *arguments: Any) -> int:
        if self.count and self.drawn == self.at * self.count:
            return CHECKPOINT
        return super().mpidata_trainer_draw(*arguments)

    def mpidata_trainer_snapshot_take(self, snapshot: Any) -> int:
        self.at = -1
        snapshot = snapshot._obj
        snapshot.number, snapshot.batch, snapshot.unseen, snapshot.capacity = 7, self.drawn // self.count, 1, 10
        snapshot.count[:] = [3, 1, 0, 1]
        snapshot.steps = SAMPLES
        snapshot.random[:] = [2**64 - 1, 2, 3, 4]
        snapshot.ledger_words = 2
        return 0

    def mpidata_trainer_snapshot_samples(self, parameters: int, times: int, steps: int, simulations: int) -> int:
        numbers = np.arange(SAMPLES)
        memory(parameters, (SAMPLES, 2), "float64")[...] = np.stack([numbers, -numbers], axis=1)
        memory(times, (SAMPLES,), "float64")[...] = 0.5 * numbers
        memory(steps, (SAMPLES,), "int64")[...] = numbers % 5
        memory(simulations, (SAMPLES,), "int64")[...] = numbers // 5
        return 0

    def mpidata_trainer_snapshot_ledger(self, steps: int, whole: int, complete: int, words: int, bits: int) -> int:
        memory(steps, (4,), "int64")[...] = [5, -1, -1, -1]
        memory(whole, (4,), "int64")[...] = [5, 0, 0, 0]
        memory(complete, (4,), "uint8")[...] = [1, 0, 0, 0]
        memory(words, (4,), "int64")[...] = [0, 2, 0, 0]
        memory(bits, (2,), "uint64")[...] = [1, 2**63]
        return 0

    def mpidata_trainer_snapshot_write(self, file: int, field: int, first: int, count: int, offset: int) -> int:
        assert self.go_on.wait(10)
        what = self.plan.fields[field]
        for n in range(first, first + count):
            contents = np.full(what.shape, n, what.dtype).tobytes()
            os.pwrite(file, contents, offset + (n - first) * len(contents))
        return self.write_status

    def mpidata_trainer_snapshot_release(self, first: int, count: int) -> int:
        assert first == self.released
        self.released += count
        return 0

    def mpidata_trainer_snapshot_end(self, failed: int, size: int, text: bytes) -> int:
        self.at = -1
        self.ended.append((failed, size, text.decode()))
        return 0


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setattr(job, "_trainer", None)
    library = Library(make_plan(run=tmp_path, policy="reservoir"))
    trainer = make_trainer(library)
    unfinished(tmp_path / "checkpoints", 7).mkdir(parents=True)
    yield library
    trainer.closed = True


def path(library: Library) -> Path:
    return unfinished(library.plan.run / "checkpoints", 7) / "trainer-0000.h5"


def test_snapshot_file_holds_samples_ledger_and_registered_states(library: Library) -> None:
    stream = MPIStreamDataset(2)
    model = torch.nn.Linear(2, 1)
    stream.register(model=model, schedule=torch.optim.lr_scheduler.StepLR(torch.optim.SGD(model.parameters(), 0.1), 3))
    assert len(list(stream)) == 6
    job.join().close()  # as at the end of the script
    ((failed, size, sha256),) = library.ended
    assert failed == 0 and (sha256, size) == digest(path(library)) and library.released == SAMPLES
    with TrainerFile(path(library)) as file:
        head = file.head
        assert (head.number, head.batch, head.trainer, head.trainers, head.unseen) == (7, 2, 0, 1, 1)
        assert head.count == (3, 1, 0, 1) and head.random == (2**64 - 1, 2, 3, 4) and head.policy == "reservoir"
        assert file.seen.tolist() == [False, True, True, False, False]
        assert file.step.tolist() == [0, 1, 2, 3, 4] and file.ledger["bits"].tolist() == [1, 2**63]
        assert file.rows("fields/temperature", 1, 3).tolist() == [[[n] * 3] * 2 for n in (1.0, 2.0)]
        assert file.rows("fields/scalar", 0, 5).tolist() == [0, 1, 2, 3, 4]
        assert file.rows("parameters", 4, 5).tolist() == [[4.0, -4.0]]
        assert torch.equal(torch.load(io.BytesIO(file.state()["model"].contents))["weight"], model.weight)
        file.check(library.plan)


def test_training_continues_while_a_snapshot_is_written(library: Library) -> None:
    library.go_on.clear()
    batches = list(MPIStreamDataset(2))
    assert len(batches) == 6 and library.ended == []
    library.go_on.set()
    job._trainer.checkpoints.finish()
    assert [failed for failed, _, _ in library.ended] == [0]


def test_saved_state_is_that_of_the_checkpoint_batch(library: Library) -> None:
    """Batches 1 and 2 have been used when the state is taken, and later batches do not change it."""
    library.go_on.clear()
    stream, model = MPIStreamDataset(2), torch.nn.Linear(1, 1)
    stream.register(model=model)
    for number, _ in enumerate(stream, start=1):
        with torch.no_grad():
            model.weight.fill_(number)
    library.go_on.set()
    job.join().close()  # as at the end of the script
    with TrainerFile(path(library)) as file:
        assert torch.load(io.BytesIO(file.state()["model"].contents))["weight"].item() == 2


def test_full_disk_fails_the_checkpoint(library: Library, capfd: pytest.CaptureFixture[str]) -> None:
    library.write_status = 3
    assert len(list(MPIStreamDataset(2))) == 6
    job._trainer.checkpoints.finish()
    ((failed, _, text),) = library.ended
    assert failed == 1 and text == f"trainer 0 cannot write {path(library)}: The sentence. Where. What to do."
    assert not path(library).exists()
    assert "Training continues without it" in capfd.readouterr().err


def test_missing_folder_fails_the_checkpoint(library: Library) -> None:
    path(library).parent.rmdir()
    assert len(list(MPIStreamDataset(2))) == 6
    job._trainer.checkpoints.finish()
    ((failed, _, text),) = library.ended
    assert failed == 1 and text.endswith("trainer-0000.h5: No such file or directory")


class Broken:
    def state_dict(self) -> dict[str, Any]:
        raise RuntimeError("on another device")

    def load_state_dict(self, state: Any) -> None:
        pass


def test_error_in_state_dict_fails_the_checkpoint(library: Library) -> None:
    stream = MPIStreamDataset(2)
    stream.register(thing=Broken())
    assert len(list(stream)) == 6
    assert library.ended == [(1, 0, "trainer 0 cannot save its state: RuntimeError: on another device")]


def resume(library: Library, state: dict[str, Any]) -> MPIStreamDataset:
    saved = {}
    for name, value in state.items():
        contents = io.BytesIO()
        torch.save(value, contents)
        saved[name] = Saved(contents.getvalue())
    library.at = -1
    library.plan = make_plan(run=library.plan.run, checkpoint=7)
    trainer = make_trainer(library)
    trainer.checkpoints.restored = Restored(40, saved, 1)
    trainer.drawn = 40
    return MPIStreamDataset(2)


def test_register_restores_the_saved_state(library: Library) -> None:
    model, before = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    stream = resume(library, {"model": before.state_dict()})
    assert stream.resumed == 40 and stream.state_dict() == {"batch": 40}
    stream.register(model=model)
    assert torch.equal(model.weight, before.weight)
    assert len(list(stream)) == 6 and stream.state_dict() == {"batch": 46}


def test_register_reports_names_and_states_that_do_not_fit(library: Library) -> None:
    stream = resume(library, {"model": {}, "optimizer": {}})
    model = torch.nn.Linear(2, 1)
    with pytest.raises(StreamError, match="does not name optimizer, which the checkpoint holds, and names schedule,"):
        stream.register(model=model, schedule=model)
    with pytest.raises(
        StreamError, match="the state of model in the checkpoint does not fit. Resume with .*made with. RuntimeError"
    ):
        stream.register(model=model, optimizer=model)


def test_loop_without_register_is_refused_if_the_checkpoint_has_states(library: Library) -> None:
    stream = resume(library, {"model": {}})
    with pytest.raises(StreamError, match=r"holds the state of model.*call mpidata.register\(...\)"):
        iter(stream)


def test_register_warns_if_the_checkpoint_has_no_states(library: Library) -> None:
    stream = resume(library, {})
    with pytest.warns(UserWarning, match="their states are not restored"):
        stream.register(model=torch.nn.Linear(2, 1))
    assert len(list(stream)) == 6


def test_register_refuses_invalid_or_repeated_registrations(library: Library) -> None:
    stream = MPIStreamDataset(2)
    with pytest.raises(StreamError, match=r"register: epoch is a int, which lacks state_dict\(\)"):
        stream.register(epoch=3)
    with pytest.raises(StreamError, match="nothing to register"):
        stream.register()
    with pytest.raises(StreamError, match="'a/b' cannot name an object"):
        stream.register(**{"a/b": torch.nn.Linear(1, 1)})
    stream.register(model=torch.nn.Linear(1, 1))
    with pytest.raises(StreamError, match="has registered model already"):
        MPIStreamDataset(2).register(other=torch.nn.Linear(1, 1))


def test_register_in_a_fresh_start_gives_no_warning(library: Library) -> None:
    stream = MPIStreamDataset(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream.register(model=torch.nn.Linear(1, 1))
    assert stream.resumed == 0
    stream.checkpoint()
    assert "checkpoint" in library.calls


def test_stream_refuses_a_state_of_another_batch(library: Library) -> None:
    stream = MPIStreamDataset(2)
    batches = iter(stream)
    next(batches)
    state = stream.state_dict()
    assert state == {"batch": 1}
    stream.load_state_dict(state)
    next(batches)
    with pytest.raises(StreamError, match="the state is of batch 1, but this stream is at batch 2"):
        stream.load_state_dict(state)


def test_trainer_reports_an_unreadable_checkpoint_to_the_job(library: Library) -> None:
    library.plan = make_plan(run=library.plan.run, checkpoint=3)
    library.mpidata_trainer_begin = lambda: library.calls.append("begin") or 0
    trainer = make_trainer(library)
    with pytest.raises(StreamError, match="000003/trainer-0000.h5 cannot be read"):
        trainer.begin()
    ((failed, sentence),) = library.stopped
    assert failed == 1 and "Cannot resume from the checkpoint" in sentence
    assert library.calls == ["begin", "close"] and trainer.closed


def test_mpidata_objects_are_saved_without_register_while_in_use(library: Library) -> None:
    stream, own, dropped = MPIStreamDataset(2), torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
    job._trainer.checkpoints.hold("mpidata.DataLoader 0", own)
    job._trainer.checkpoints.hold("mpidata.DataLoader 1", dropped)
    del dropped
    assert len(list(stream)) == 6
    job.join().close()  # as at the end of the script
    with TrainerFile(path(library)) as file:
        state = file.state()
    assert list(state) == ["mpidata.DataLoader 0"]
    assert torch.equal(torch.load(io.BytesIO(state["mpidata.DataLoader 0"].contents))["weight"], own.weight)


def test_mpidata_objects_are_restored_alongside_registered_ones(library: Library) -> None:
    model, own, new = torch.nn.Linear(2, 1), torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
    stream = resume(library, {"model": model.state_dict(), "mpidata.DataLoader 0": own.state_dict()})
    stream.register(model=model)
    job._trainer.checkpoints.hold("mpidata.DataLoader 0", new)
    assert torch.equal(new.weight, own.weight) and len(list(stream)) == 6
