"""Checks of a run of the resume campaign after its end."""

from collections import Counter
from pathlib import Path

from jobs import Result
from programs.drawn import Part
from resume_draw import Draw, Start

__all__ = ["check_drawn", "check_record", "check_summary"]


def check_summary(one: Draw, result: Result) -> None:
    """All samples were received."""
    summary = result.summary
    assert summary["status"] == "complete" and not summary["set_aside"], result.logs()
    assert summary["simulations"]["complete"] == one.simulations + one.validation
    assert summary["samples"]["received"] == len(one.samples), summary["samples"]
    assert summary["samples"]["validation"] == one.validation * one.steps, summary["samples"]


def check_drawn(one: Draw, parts: list[Part], run: int) -> None:
    """The batches that count of all starts have every sample once; the last start drops or repeats the uneven rest."""
    last, size = one.starts[run], max(1, one.batch)
    changed = len({start.trainers for start in one.starts[: run + 1]}) > 1
    for part, after in zip(parts, parts[1:], strict=False):
        for trainer, batches in part.batches.items():
            assert len(batches) == after.resumed - part.resumed, (part.attempt, trainer, len(batches), after.resumed)
    before = Counter(key for part in parts[:-1] for key in part.keys())
    final = {
        trainer: Counter(key for batch in batches for key in batch) for trainer, batches in parts[-1].batches.items()
    }
    drawn = before.keys() | {key for counted in final.values() for key in counted}
    assert drawn <= one.samples, sorted(drawn - one.samples)[:10]
    missing = one.samples - drawn
    if one.policy == "reservoir":
        most = 0 if last.tail == "repeat" else last.trainers * (last.capacity + size)
        assert len(missing) <= most, f"{len(missing)} samples were never drawn"
        return
    assert max(before.values(), default=1) == 1, f"drawn twice: {[key for key, n in before.items() if n > 1][:10]}"
    left = {trainer: {key for key in one.samples - before.keys() if share(key, last) == trainer} for trainer in final}
    assert not (again := before.keys() & set().union(*final.values())) or last.tail == "repeat", sorted(again)[:10]
    batches = {counted.total() / size for counted in final.values()}
    if last.tail == "drop":
        assert all(counted.total() == len(counted) for counted in final.values()), final
        by_share = min(len(keys) // size for keys in left.values())
        most = sum(map(len, left.values())) // size // last.trainers
    else:
        assert not missing, sorted(missing)[:10]
        by_share = max(-(-len(keys) // size) for keys in left.values())
        most = -(-sum(map(len, left.values())) // size // last.trainers)
    if changed:  # what was never drawn was dealt out evenly, so that no trainer is short of it
        least, most = sorted([by_share, most])
        assert len(batches) == 1 and least - 1 <= batches.pop() <= most + 1, (batches, by_share, most, final)
    else:
        assert batches == {by_share}, (batches, by_share, final)


def share(key: str, start: Start) -> int:
    """Return the trainer that gets a sample."""
    return sum(map(int, key.split("/"))) % start.trainers


def check_record(one: Draw, folder: Path) -> None:
    """The record holds every sample once, with the values that were sent."""
    import h5py
    import torch

    from mpidata import RecordedDataset

    pattern = (torch.arange(one.elements) % 61).float()
    rows = 0
    for path in folder.iterdir():
        with h5py.File(path, "r", swmr=True) as file:
            rows += int((file["simulation"][:] >= 0).sum())
    found = []
    for validation in (False, True):
        dataset = RecordedDataset(folder, validation=validation) if one.validation or not validation else []
        for sample in (dataset[i] for i in range(len(dataset))):
            simulation, step = int(sample["simulation"]), int(sample["step"])
            assert torch.equal(sample["u"], pattern + (4096 * simulation + 64 * step)), (simulation, step)
            found.append((simulation, step))
            assert (simulation >= one.simulations) == validation
    total = (one.simulations + one.validation) * one.steps
    assert rows == len(found) == len(set(found)) == total, (rows, len(found), len(set(found)), total)
