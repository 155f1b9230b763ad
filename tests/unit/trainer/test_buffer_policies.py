"""Draws of firo and reservoir against their definition: chi-square over many seeds, on the library's own code."""

import ctypes
import functools
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

FIFO, FIRO, RESERVOIR = range(3)


SOURCE = Path(__file__).parents[3] / "c_api"


@functools.cache
def built() -> ctypes.CDLL:
    """Build the part of the library whose names the library itself does not export."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "buffer.so")
        mpicc = Path(sys.executable).with_name("mpicc")
        flags = ["-O2", "-shared", "-fPIC", f"-I{SOURCE}/include", f"-I{SOURCE}/src"]
        rooms = ("base", "containers", "program", "plan_text", "wire", "dtypes", "buffer")
        files = [path for room in rooms for path in (SOURCE / "src" / room).rglob("*.c")]
        subprocess.run([mpicc, *flags, *files, "-o", library], check=True)
        return ctypes.CDLL(str(library))


class Buffer:
    """mpidata_buffer of buffer.h, whose structure is private to the library."""

    def __init__(self, policy: int, capacity: int, watermark: int, seed: int, stream: int = 0) -> None:
        self.library = built()
        self.library.mpidata_buffer_add.restype = ctypes.c_int64
        self.library.mpidata_buffer_draw.restype = ctypes.c_int64
        self.library.mpidata_buffer_available.restype = ctypes.c_int64
        self.memory = ctypes.create_string_buffer(1024)
        numbers = [ctypes.c_int64(capacity), ctypes.c_int64(watermark), ctypes.c_uint64(seed), ctypes.c_uint64(stream)]
        assert self.library.mpidata_buffer_open(self.memory, policy, *numbers) == 0

    def add(self, slot: int) -> int:
        assert not self.library.mpidata_buffer_full(self.memory)
        return int(self.library.mpidata_buffer_add(self.memory, ctypes.c_int64(slot)))

    def full(self) -> bool:
        return bool(self.library.mpidata_buffer_full(self.memory))

    def draw(self) -> int:
        return int(self.library.mpidata_buffer_draw(self.memory, ctypes.byref(ctypes.c_int())))

    def available(self) -> int:
        return int(self.library.mpidata_buffer_available(self.memory))

    def end(self) -> None:
        self.library.mpidata_buffer_end(self.memory)

    def close(self) -> None:
        self.library.mpidata_buffer_close(self.memory)


SEEDS, SAMPLES = 4000, 12
SMALLEST_P = 1e-4


def uniform(counts: np.ndarray) -> float:
    return float(stats.chisquare(counts).pvalue)


@pytest.fixture
def buffers() -> Iterator[list[Buffer]]:
    made: list[Buffer] = []
    yield made
    for buffer in made:
        buffer.close()


@pytest.mark.parametrize("policy", [FIRO, RESERVOIR])
@pytest.mark.parametrize("place", [0, 1, 5])
def test_each_draw_is_uniform_among_buffered_samples(buffers: list[Buffer], policy: int, place: int) -> None:
    counts = np.zeros(SAMPLES)
    for seed in range(SEEDS):
        buffer = Buffer(policy, SAMPLES, 0, seed)
        for slot in range(SAMPLES):
            buffer.add(slot)
        for _ in range(place):
            buffer.draw()
        counts[buffer.draw()] += 1
        buffer.close()
    assert uniform(counts) > SMALLEST_P


def test_successive_draws_of_a_reservoir_are_independent(buffers: list[Buffer]) -> None:
    pairs = np.zeros((6, 6))
    for seed in range(SEEDS):
        buffer = Buffer(RESERVOIR, 6, 0, seed)
        for slot in range(6):
            buffer.add(slot)
        pairs[buffer.draw(), buffer.draw()] += 1
        buffer.close()
    assert uniform(pairs.ravel()) > SMALLEST_P


def test_a_firo_order_is_a_uniform_permutation(buffers: list[Buffer]) -> None:
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(SEEDS):
        buffer = Buffer(FIRO, 4, 0, seed)
        for slot in range(4):
            buffer.add(slot)
        order = tuple(buffer.draw() for _ in range(4))
        counts[order] = counts.get(order, 0) + 1
        buffer.close()
    assert len(counts) == 24 and uniform(np.array(list(counts.values()))) > SMALLEST_P


def test_evicted_sample_is_uniform_among_seen_samples_and_never_unseen(buffers: list[Buffer]) -> None:
    evicted_place = np.zeros(5)
    for seed in range(SEEDS):
        buffer = Buffer(RESERVOIR, SAMPLES, 0, seed)
        for slot in range(SAMPLES):
            buffer.add(slot)
        seen: set[int] = set()
        while len(seen) < 5:
            seen.add(buffer.draw())
        evicted = buffer.add(SAMPLES)
        assert evicted in seen
        evicted_place[sorted(seen).index(evicted)] += 1
        buffer.close()
    assert uniform(evicted_place) > SMALLEST_P


def test_final_draws_that_empty_a_reservoir_are_uniform(buffers: list[Buffer]) -> None:
    counts = np.zeros((SAMPLES, SAMPLES))
    for seed in range(SEEDS):
        buffer = Buffer(RESERVOIR, SAMPLES, 0, seed)
        for slot in range(SAMPLES):
            buffer.add(slot)
        for _ in range(4):
            buffer.draw()
        buffer.end()
        order = [buffer.draw() for _ in range(SAMPLES)]
        assert sorted(order) == list(range(SAMPLES)) and buffer.available() == 0
        for place, slot in enumerate(order):
            counts[place, slot] += 1
        buffer.close()
    assert all(uniform(row) > SMALLEST_P / SAMPLES for row in counts)


@pytest.mark.parametrize("policy", [FIFO, FIRO, RESERVOIR])
def test_draws_are_a_function_of_seed_trainer_and_arrivals(buffers: list[Buffer], policy: int) -> None:
    def orders(seed: int, stream: int) -> list[int]:
        buffer = Buffer(policy, 30, 0, seed, stream)
        buffers.append(buffer)
        drawn, following = [], 0
        for turn in range(400):
            if turn % 3 != 2 and not buffer.full():
                buffer.add(following)
                following += 1
            elif buffer.available():
                drawn.append(buffer.draw())
        return drawn

    assert orders(7, 0) == orders(7, 0)
    if policy != FIFO:
        assert orders(7, 0) != orders(8, 0)
        assert orders(7, 0) != orders(7, 1)
