"""Part files copied again between two starts count as the same; files with other rows do not."""

import os
import shutil

import numpy as np
import pytest

from mpidata.errors import StreamError


@pytest.fixture
def staged(tmp_path):
    home, scratch = tmp_path / "home", tmp_path / "scratch"
    home.mkdir()
    for part in range(3):
        np.save(home / f"{part}.npy", np.arange(part, part + 300_000))

    def stage(time=1_000_000_000):
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.copytree(home, scratch, copy_function=shutil.copyfile)
        for path in scratch.iterdir():
            os.utime(path, (time, time))
        return scratch

    return stage


def begun(job, folder):
    data = job(2).dataset(0, folder, 1000)
    batches = iter(data)
    got = [next(batches)["data"] for _ in range(5)]
    return [v for tensor in got for v in tensor.tolist()], data.state_dict()


def test_state_is_accepted_if_only_modification_times_differ(job, staged):
    folder = staged()
    (whole,) = [[v for b in job(1).dataset(0, folder, 1000) for v in b["data"].tolist()]]
    got, state = begun(job, folder)
    data = job(1).dataset(0, staged(2_000_000_000), 1000)
    data.load_state_dict(state)
    assert got + [v for b in data for v in b["data"].tolist()] == whole


@pytest.mark.parametrize("place", [0, -1, 150_000])
def test_state_is_refused_if_the_compared_contents_differ(job, staged, tmp_path, place):
    _, state = begun(job, staged())
    path = tmp_path / "home" / "1.npy"
    numbers = np.load(path)
    numbers[max(place - 5000, 0) : place + 5000 if place > 0 else None if place else 5] += 1
    np.save(path, numbers)
    data = job(1).dataset(0, staged(2_000_000_000), 1000)
    with pytest.raises(StreamError, match="names, sizes or contents differ"):
        data.load_state_dict(state)


def test_a_state_of_another_drop_last_is_refused(job, staged):
    _, state = begun(job, folder := staged())
    with pytest.raises(StreamError, match="the state has drop_last False, but this FileDataset has True"):
        job(1).dataset(0, folder, 1000, drop_last=True).load_state_dict(state)


def test_state_without_contents_is_accepted_only_if_no_part_was_rewritten(job, staged):
    _, state = begun(job, folder := staged())
    for key in ("contents", "named"):
        del state[key]
    data = job(1).dataset(0, folder, 1000)
    data.load_state_dict(state)
    assert data.resumed == (0, 5)
    with pytest.raises(StreamError, match="not those of the state"):
        job(1).dataset(0, staged(2_000_000_000), 1000).load_state_dict(state)
