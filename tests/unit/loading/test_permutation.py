"""The permutation matches its definition, and is as random as an order should be."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from mpidata.loading.permutation import Permutation

PRIME = 2_147_483_647
MULTIPLIER = 0xD2B74407B1CE6E93


def permute_slowly(n, keys, place):
    """Return the row at a place, as `Permutation.rows` does, with integer arithmetic only."""
    bits = max(6, (n - 1).bit_length())
    left_bits = bits // 2
    right_bits = bits - left_bits
    while True:
        left, right = place >> right_bits, place % (1 << right_bits)
        for key in keys.tolist():
            product = MULTIPLIER * left
            low = (product % (1 << 32) << (right_bits - left_bits)) | right >> left_bits
            left = ((product >> 32) ^ key ^ right) % (1 << left_bits)
            right = low % (1 << right_bits)
        place = left << right_bits | right
        if place < n:
            return place


@pytest.mark.parametrize("n", [1, 2, 5, 63, 64, 65, 1000, 2**17 + 1])
def test_rows_is_a_permutation_and_places_is_its_inverse(n):
    everything = np.arange(n)
    permutation = Permutation(n, 1, 2)
    rows = permutation.rows(everything)
    assert np.array_equal(np.sort(rows), everything)
    assert np.array_equal(permutation.places(rows), everything)
    assert np.array_equal(permutation.rows(everything[::-1]), rows[::-1])


@pytest.mark.parametrize("n", [5, 1000, 2**30 + 3, 10**9])
def test_permutation_matches_its_definition(n):
    permutation = Permutation(n, 7, 3, 2)
    places = np.linspace(0, n - 1, 5).astype(np.int64)
    assert permutation.rows(places).tolist() == [permute_slowly(n, permutation.keys, p) for p in places.tolist()]


def test_order_differs_by_seed_epoch_and_stream():
    places = np.arange(100)
    orders = [Permutation(100, *key).rows(places).tolist() for key in [(1, 1), (1, 2), (2, 1), (1, 1, 1), (-1, 1)]]
    assert all(a != b for a, b in itertools.combinations(orders, 2))
    assert Permutation(100, 1, 1, 0).rows(places).tolist() == orders[0]


def test_one_billion_rows_need_no_table():
    permutation = Permutation(10**9, 1, 0)
    places = np.arange(10**9 - 1000, 10**9)
    rows = permutation.rows(places)
    assert np.array_equal(permutation.places(rows), places)
    assert len(set(rows.tolist())) == 1000 and rows.min() < 10**8 and rows.max() > 9 * 10**8


def affine(n, seed, rows):
    """Return a permutation in which only two numbers are random."""
    factor = next(a for a in itertools.count(1 + seed * 7919 % PRIME % n) if math.gcd(a, n) == 1)
    return (np.asarray(rows) * factor + seed * 104_729 % PRIME) % n


def places_by_seed(n, rows, make, seeds):
    return np.array([make(n, seed, rows) for seed in range(seeds)])


def ours(n, seed, rows):
    return Permutation(n, seed, 0).places(np.asarray(rows))


def p_of_orders(n, make, seeds):
    """Return the p-value of chi-square over the n! orders."""
    orders = places_by_seed(n, range(n), make, seeds) @ (n ** np.arange(n))
    _, counts = np.unique(orders, return_counts=True)
    return stats.chisquare(np.pad(counts, (0, math.factorial(n) - counts.size))).pvalue


def p_of_pairs(n, places, cell, cells):
    """Return the p-value of chi-square over the cells of two places, which are never the same place."""
    sizes = np.bincount(cell(np.arange(n)), minlength=cells).astype(float)
    expected = (sizes[:, None] * (sizes - np.eye(cells))) / n / (n - 1) * len(places)
    counts = np.zeros((cells, cells))
    np.add.at(counts, (cell(places[:, 0]), cell(places[:, 1])), 1)
    return stats.chisquare(counts.ravel(), expected.ravel()).pvalue


def by_rest(divisor):
    return lambda places: places % divisor


FEW, MANY = 10_000, pytest.param(100_000, marks=pytest.mark.full)


@pytest.mark.parametrize("seeds", [FEW, MANY])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_all_orders_are_equally_frequent(n, seeds):
    assert p_of_orders(n, ours, seeds) > 0.001


@pytest.mark.parametrize("seeds", [FEW, MANY])
@pytest.mark.parametrize(("n", "divisor"), [(1000, 10), (2**20 + 1, 17)])
def test_places_of_neighbours_are_independent(n, divisor, seeds):
    places = places_by_seed(n, [n // 3, n // 3 + 1], ours, seeds)
    assert p_of_pairs(n, places, by_rest(divisor), divisor) > 0.001
    assert p_of_pairs(n, places, lambda p: p * 20 // n, 20) > 0.001


def test_an_affine_permutation_fails_these_tests():
    assert p_of_orders(5, affine, FEW) < 1e-9
    for n, divisor in [(1000, 10), (2**20 + 1, 17)]:
        places = places_by_seed(n, [n // 3, n // 3 + 1], affine, FEW)
        assert p_of_pairs(n, places, by_rest(divisor), divisor) < 0.001
