"""FileDataset over a stand-in for MPI: each row comes once, in the order given by seed, epoch and place."""

import functools
import pickle
import random
import threading
from collections.abc import Callable

import numpy as np
import pytest
from part_files import ROWS, SIZES, WRITERS, make_parts, write_npz

from mpidata.errors import StreamError
from mpidata.loaders import file_work
from mpidata.loaders.part_copies import Copy
from mpidata.loading.blocks import order_of
from mpidata.loading.part_messages import WANTED, part_text
from mpidata.loading.parts import Part
from mpidata.loading.transport import Kind
from mpidata.native.item import text_of


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("shuffle", ["rows", "parts", None])
def test_each_row_is_read_once_per_epoch_in_every_format(job, tmp_path, kind, shuffle):
    columns = {"x": ["a", "b"], "y": "y"} if kind == "csv" else None
    data = job(2).dataset(0, make_parts(tmp_path, kind), 8, columns, shuffle=shuffle, open_parts=2)
    epochs = [[{k: v.numpy() for k, v in batch.items()} for batch in data] for _ in range(2)]
    orders = []
    for batches in epochs:
        assert [len(b["y"]) for b in batches] == [8] * 10 + [6]
        y = np.concatenate([b["y"] for b in batches])
        x = np.concatenate([b["x"] for b in batches])
        assert np.array_equal(np.sort(y), np.arange(ROWS))
        assert np.array_equal(x, np.stack([y * 2.0, y * 3.0], axis=1))
        orders.append(y.tolist())
    assert (orders[0] == orders[1]) == (shuffle is None)
    assert (orders[0] == list(range(ROWS))) == (shuffle is None)


@pytest.mark.parametrize("shuffle", ["rows", "parts", None])
def test_the_order_is_the_same_with_other_numbers_of_loaders_and_trainers(job, tmp_path, shuffle):
    make_parts(tmp_path)
    settings = {"epochs": 2, "shuffle": shuffle, "open_parts": 2}
    alone = job(1).rows(tmp_path, 8, **settings)
    for loaders, trainers in [(3, 1), (5, 2), (2, 4), (1, 4)]:
        others = job(loaders, trainers).rows(tmp_path, 8 // trainers, **settings)
        assert [o.tolist() for o in others] == [a.tolist() for a in alone]


def test_rows_are_ordered_by_the_permutation(job, tmp_path):
    from mpidata.loading.permutation import Permutation

    (rows,) = job(1).rows(make_parts(tmp_path), 8, seed=3)
    assert rows.tolist() == Permutation(ROWS, 3, 0).rows(np.arange(ROWS)).tolist()


def test_rows_of_each_block_of_parts_are_consecutive(job, tmp_path):
    (rows,) = job(1).rows(make_parts(tmp_path), 4, shuffle="parts", open_parts=2)
    part_of = np.repeat(np.arange(5), SIZES)[rows]
    seen = list(dict.fromkeys(part_of.tolist()))
    blocks = [set(seen[:2]), set(seen[2:4]), set(seen[4:])]
    bounds = np.cumsum([0, *[sum(SIZES[p] for p in block) for block in blocks]])
    for block, begin, end in zip(blocks, bounds, bounds[1:], strict=False):
        assert set(part_of[begin:end].tolist()) == block


def test_small_batches_of_a_block_are_requested_together(job, tmp_path):
    make_parts(tmp_path)
    current = job(2)
    data = current.dataset(0, tmp_path, 4, shuffle="parts", open_parts=2)
    for _ in range(3):
        assert sum(len(batch["y"]) for batch in data) == ROWS
    asked = [sent[4] for sent in current.network.trainers[0].sent if sent[2] == Kind.CREDIT]
    heads = [WANTED.unpack_from(payload) for payload in asked]
    assert len([epoch for epoch, _, _ in heads if epoch == 0]) > 2 * 10  # the size of rows is not known yet
    # Three blocks, and two batches with rows of two blocks, from two loaders.
    assert len([epoch for epoch, _, _ in heads if epoch == 2]) <= 2 * (3 + 2 * 2)


def test_each_of_many_loaders_gets_requests_of_two_megabytes(job, tmp_path):
    for part in range(8):
        np.save(tmp_path / f"{part}.npy", np.full((50, 1 << 14), part, np.float32))  # rows of 64 KiB, 25 MB in all
    current = job(8)
    data = current.dataset(0, tmp_path, 8)
    for _ in range(3):
        assert sum(len(batch["data"]) for batch in data) == 400
    asked = [sent[4] for sent in current.network.trainers[0].sent if sent[2] == Kind.CREDIT]
    heads = [WANTED.unpack_from(payload) for payload in asked]
    assert len([epoch for epoch, _, _ in heads if epoch == 2]) <= 8 * 3  # 16 MB from all eight


def test_places_are_sorted_once_for_all_trainers(job, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(
        file_work, "order_of", lambda block, parts: calls.append((block, parts)) or order_of(block, parts)
    )
    job(2, 3).rows(make_parts(tmp_path), 4, epochs=2)
    assert len(calls) > 3 and len(calls) == len(set(calls))


@pytest.mark.parametrize(("batch", "loaders"), [(1, 2), (4, 1), (4, 3)])
def test_at_most_two_blocks_are_kept(job, tmp_path, batch, loaders):
    make_parts(tmp_path)
    current = job(loaders)
    data = current.dataset(0, tmp_path, batch, shuffle="parts", open_parts=1)
    for _ in range(3):
        list(data)
    holds = [pickle.loads(sent[4]) for sent in current.network.trainers[0].sent if sent[2] == Kind.PARTS]
    assert len(holds) > 10 and max(len(hold.still) for hold in holds) == 2


def test_drop_last_drops_rows_and_share_false_gives_each_trainer_all_rows(job, tmp_path):
    make_parts(tmp_path)
    (rows,) = job(2, 2).rows(tmp_path, 10, drop_last=True)
    assert len(rows) == len(set(rows.tolist())) == 80
    (rows,) = job(1, 2).rows(tmp_path, 10, share=False)
    assert sorted(rows.tolist()) == sorted([*range(ROWS)] * 2)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shuffle", ["rows", "parts", None])
def test_deaths_of_loaders_do_not_change_the_order_of_rows(job, tmp_path, seed, shuffle):
    make_parts(tmp_path)
    settings = {"shuffle": shuffle, "open_parts": 2}
    expected = [rows.tolist() for rows in job(1).rows(tmp_path, 4, epochs=3, **settings)]
    chance = random.Random(seed)
    current = job(3)
    data = current.dataset(0, tmp_path, 4, **settings)
    for rows in expected:
        got = []
        for batch in data:
            got += batch["y"].tolist()
            if chance.random() < 0.15:
                current.network.kill(chance.choice(sorted(current.network.alive)))
                if chance.random() < 0.7 or not current.network.alive:
                    current.network.start()
        assert got == rows


@pytest.mark.parametrize("shuffle", ["rows", "parts", None])
def test_parts_of_a_retiring_loader_are_read_by_others(job, tmp_path, shuffle):
    make_parts(tmp_path)
    expected = [rows.tolist() for rows in job(1).rows(tmp_path, 4, epochs=2, shuffle=shuffle)]
    current = job(3)
    data = current.dataset(0, tmp_path, 4, shuffle=shuffle)
    got = [[], []]
    for epoch in range(2):
        for number, batch in enumerate(data):
            got[epoch] += batch["y"].tolist()
            if (epoch, number) in ((0, 3), (0, 5)):
                current.network.retire(2 - number // 5)
            if (epoch, number) == (1, 2):
                current.network.kill(2)
    assert got == expected and set(data._remote.read_again) > set()


def test_state_resumes_with_another_number_of_trainers(job, tmp_path):
    make_parts(tmp_path)
    whole = job(1).rows(tmp_path, 8, epochs=2)
    first = job(1).dataset(0, tmp_path, 8)
    batches = iter(first)
    got = [next(batches)["y"].tolist() for _ in range(3)]
    state = first.state_dict()
    second = job(3, 2)
    sets = [second.dataset(t, tmp_path, 4) for t in range(2)]
    for data in sets:
        data.load_state_dict(state)
        data.set_epoch(0)
        assert data.resumed == (0, 3)
    rest = [[b["y"].tolist() for pair in zip(*sets, strict=True) for b in pair] for _ in range(2)]
    assert sum(got + rest[0], []) == whole[0].tolist()
    assert sum(rest[1], []) == whole[1].tolist()
    write_npz(tmp_path / "part1.npz", np.zeros((1, 2)), np.zeros(1, int))
    changed = job(1).dataset(0, tmp_path, 8)
    with pytest.raises(StreamError, match="not those of the state"):
        changed.load_state_dict(state)


def test_abandoned_iteration_counts_as_an_epoch_and_set_epoch_selects_one(job, tmp_path):
    make_parts(tmp_path)
    epochs = [rows.tolist() for rows in job(1).rows(tmp_path, 8, epochs=3)]
    data = job(2).dataset(0, tmp_path, 8)
    next(iter(data))
    assert [y for batch in data for y in batch["y"].tolist()] == epochs[1]
    data.set_epoch(2)
    assert [y for batch in data for y in batch["y"].tolist()] == epochs[2]
    data.set_epoch(0)
    assert [y for batch in data for y in batch["y"].tolist()] == epochs[0]


def halve(chunk):
    return {"y": chunk["y"][::2]}


def double(chunk):
    return {"z": chunk["y"] * 2}


def raises(chunk):
    raise ZeroDivisionError("what a transform raises")


def test_a_transform_runs_on_the_loaders(job, tmp_path):
    data = job(1).dataset(0, make_parts(tmp_path), 8, transform=double)
    assert sorted(z for batch in data for z in batch["z"].tolist()) == list(range(0, 2 * ROWS, 2))
    with pytest.raises(ZeroDivisionError, match="what a transform raises"):
        list(job(1).dataset(0, tmp_path, 8, transform=raises))


def spoil(folder, text):
    (folder / "part2.npz").write_bytes(text)


@pytest.mark.parametrize(
    ("spoilt", "settings", "sentence"),
    [
        (lambda f: spoil(f, b"no zip"), {}, r"part2\.npz: cannot be read"),
        (lambda f: np.savez(f / "part2.npz", x=np.zeros((3, 2)), y=np.zeros(3, "f4")), {}, r"part\d\.npz: its columns"),
        (
            lambda f: [np.savez(p, y=np.zeros(0)) for p in f.iterdir()],
            {},
            r"the 5 parts, first .*part0\.npz, have no rows",
        ),
        (lambda f: np.savez(f / "part2.npz", x=np.zeros(3), y=np.zeros(4)), {}, r"part2\.npz: 'y' has 4 rows"),
        (
            lambda f: [np.savez(p, y=np.array(["a"])) for p in f.iterdir()],
            {"columns": ["y"]},
            r"part\d\.npz: column 'y' has texts",
        ),
        (lambda f: None, {"columns": ["w"]}, r"part\d\.npz: there is no column 'w'"),
        (lambda f: None, {"transform": halve}, r"part\d\.npz: transform returned"),
        (lambda f: (f / "part9.txt").write_text("x"), {}, r"part9\.txt: no reader"),
        (
            lambda f: (f / "part9.parquet").write_text("x"),
            {},
            r"part9\.parquet: cannot be read: [^.]+\. If it is damaged, recreate the part",
        ),
        (lambda f: (f / "part9.h5").write_text("x"), {}, r"part9\.h5 cannot be read as HDF5"),
        (lambda f: np.savez(f / "part9.npz", x=np.zeros((1, 2), "f4"), y=[0]), {}, r"x float32\[2\] .* x float64"),
        (lambda f: np.savez(f / "part9.npz", y=np.zeros(1, int)), {}, r"part\d\.npz: its columns are not those"),
        (lambda f: None, {"reader": "my_module:rows"}, 'reader="my_module:rows" cannot be imported'),
        (lambda f: None, {"transform": functools.partial(double, threading.Lock())}, "transform cannot be sent"),
    ],
)
def test_bad_parts_are_named(job, tmp_path, spoilt, settings, sentence):
    spoilt(make_parts(tmp_path))
    with pytest.raises(StreamError, match=sentence):
        list(job(2).dataset(0, tmp_path, 8, **settings))


def test_a_part_that_changes_while_the_job_runs_is_named(job, tmp_path):
    data = job(1).dataset(0, make_parts(tmp_path), 8)
    write_npz(tmp_path / "part1.npz", np.zeros((2, 2)), np.zeros(2, int))
    with pytest.raises(StreamError, match=r"part1\.npz changed after the job started"):
        list(data)


def test_bad_arguments_are_refused(job, tmp_path):
    make_parts(tmp_path)
    for settings, sentence in [
        ({"paths": tmp_path / "none*"}, "matches no file"),
        ({"paths": []}, "no part files"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"shuffle": "all"}, "shuffle is 'all'"),
        ({"reader": "module"}, "reader is 'module'"),
    ]:
        with pytest.raises(StreamError, match=sentence):
            job(1).dataset(0, **{"paths": tmp_path, "batch_size": 8, **settings})


def test_loader_reports_the_part_that_it_reads(job, tmp_path):
    current = job(1)
    data = current.dataset(0, make_parts(tmp_path), 8)
    (loader,) = current.network.alive.values()
    assert set(map(text_of, loader.at)) == {"", *(f"part {tmp_path / f'part{number}.npz'}" for number in range(5))}
    loader.at.clear()
    next(iter(data))
    read = list(dict.fromkeys(text_of(text) for text in loader.at if text))
    assert read == sorted(read) and len(read) == 5


def test_part_that_kills_loaders_is_skipped(job, tmp_path):
    make_parts(tmp_path)
    current = job(2, retries=0)
    data = current.dataset(0, tmp_path, 20)
    current.network.kill(0, part_text(Part(str(tmp_path / "part2.npz"), 0, 0)))
    current.network.start()
    for _ in range(2):
        assert sorted(y for batch in data for y in batch["y"].tolist()) == [*range(14), *range(54, ROWS)]


def test_part_that_kills_loaders_while_its_rows_are_counted_is_skipped(job, tmp_path, monkeypatch):
    make_parts(tmp_path)
    current = job(1, retries=1)
    lost: list[int] = []

    def dies(copy: Copy, number: int, alive: Callable[[str], None]) -> int:
        if number != 2:
            return count(copy, number, alive)
        loader = max(current.network.alive)
        lost.append(loader)
        assert len(lost) < 10, "loaders are lost without end"
        current.network.start()
        current.network.kill(loader, part_text(copy.files.parts[number]))
        return 0  # never received

    count = Copy.count
    monkeypatch.setattr(Copy, "count", dies)
    data = current.dataset(0, tmp_path, 20)
    assert len(lost) == 2
    assert sorted(y for batch in data for y in batch["y"].tolist()) == [*range(14), *range(54, ROWS)]


def test_reading_progress_and_batch_counts_are_reported(job, tmp_path):
    make_parts(tmp_path)
    current = job(3)
    reported = current.reported
    data = current.dataset(0, tmp_path, 8)
    assert ("loaded.parts", 5) in reported and sum(v for k, v in reported if k == "loaded.wait_s") == 0
    batches = iter(data)
    next(batches)
    first_batch_s = dict(reported)["loaded.first_batch_s"]
    assert 0 < first_batch_s < 20
    current.network.kill(0)
    rest = sum(1 for _ in batches)
    sums = {name: sum(v for k, v in reported if k == f"loaded.{name}") for name in ("batches", "samples", "wait_s")}
    assert sums["batches"] == 1 + rest == 11 and sums["samples"] == ROWS and sums["wait_s"] >= first_batch_s
    assert sum(v for k, v in reported if k == "loaded.parts_read_again") > 0
    assert [v for k, v in reported if k == "loaded.epoch_end"] == [0]
    reported.clear()
    next(iter(data))  # a loop that is left early
    assert ("loaded.batches", 1) in reported and "loaded.epoch_end" not in dict(reported)


def test_read_parts_are_counted_by_trainer_0_only(job, tmp_path):
    make_parts(tmp_path)
    current = job(2, 2)
    data = [current.dataset(trainer, tmp_path, 8) for trainer in range(2)]
    for each in data:
        next(iter(each))
    assert len(data[0]._remote.read) == 5 and not data[1]._remote.read
