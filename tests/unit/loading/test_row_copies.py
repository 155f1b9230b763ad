"""Rows that are copied out of a store, and into a batch."""

import numpy as np
import pytest

from mpidata.native.loading import load


@pytest.mark.parametrize("row_bytes", [1, 84, 4096])
def test_rows_are_gathered_and_scattered_by_number(row_bytes):
    store = np.random.default_rng(1).integers(0, 256, (50, row_bytes), np.uint8)
    numbers = np.array([49, 0, 7, 7, 30, 1, 48, 2, 3, 4, 5, 49], np.int64)
    rows, batch = np.empty((12, row_bytes), np.uint8), np.zeros((50, row_bytes), np.uint8)
    at = store.ctypes.data, len(store), row_bytes, numbers.ctypes.data
    assert load().mpidata_gather(rows.ctypes.data, *at, len(numbers)) == 0
    assert np.array_equal(rows, store[numbers])
    places = numbers.astype(np.uint32)
    at = batch.ctypes.data, len(batch), rows.ctypes.data, row_bytes, places.ctypes.data
    assert load().mpidata_scatter(*at, len(places)) == 0
    assert np.array_equal(batch[numbers], rows)
    assert not batch[np.setdiff1d(np.arange(50), numbers)].any()


@pytest.mark.parametrize("wrong", [50, -1, 1 << 40])
def test_row_number_out_of_range_is_refused(wrong):
    store, rows = np.zeros((50, 8), np.uint8), np.ones((12, 8), np.uint8)
    numbers = np.zeros(12, np.int64)
    numbers[9] = wrong  # others near it are looked at in advance
    at = store.ctypes.data, len(store), 8, numbers.ctypes.data
    assert load().mpidata_gather(rows.ctypes.data, *at, len(numbers)) == 1
    assert not rows[:9].any() and rows[9:].all()
