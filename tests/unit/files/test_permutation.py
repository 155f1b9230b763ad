"""The keyed permutation is one, and looks random."""

import collections
import itertools

import numpy as np
import pytest
from scipy.stats import chisquare

from mpidata.files.permutation import Permutation


@pytest.mark.parametrize("n", [1, 2, 3, 5, 255, 256, 257, 1000, 70_001])
def test_each_row_is_at_one_place(n):
    assert np.array_equal(np.sort(Permutation(n, 3, 1).rows(np.arange(n))), np.arange(n))


def test_places_are_computed_one_by_one_for_any_size():
    n = 10**9 + 7
    places = np.array([0, 5, n - 1])
    rows = Permutation(n, 3, 1).rows(places)
    assert rows.tolist() == [int(Permutation(n, 3, 1).rows(places[i : i + 1])[0]) for i in range(3)]
    assert len(set(rows.tolist())) == 3 and rows.min() >= 0 and rows.max() < n


def test_seed_and_epoch_both_count():
    orders = [tuple(Permutation(100, *key).rows(np.arange(100))) for key in itertools.product([0, 1, 2**40], [0, 1])]
    assert len(set(orders)) == 6


def test_all_orders_are_equally_frequent_over_seeds():
    n = 3
    counts = collections.Counter(tuple(Permutation(n, seed, 0).rows(np.arange(n))) for seed in range(60))
    expected = list(itertools.permutations(range(n)))
    assert chisquare([counts[order] for order in expected]).pvalue > 0.001
