"""Samplers that learn, without a job: with made-up losses, and from a restored state."""

import pickle

import numpy as np
import pytest

from mpidata.config.parameters import AdaptiveKeys, BreedKeys, Points, PowerKeys
from mpidata.sampling.samplers.adaptive import Adaptive
from mpidata.sampling.samplers.breed import Breed
from mpidata.sampling.samplers.difficulty import fit
from mpidata.sampling.samplers.observations import Observed
from mpidata.sampling.samplers.power import Power
from mpidata.sampling.space import Space

PLANE = Space([(-1.0, 1.0), (100.0, 500.0)])
MIXED = Space([(0.0, 1.0), Points(integers=(1, 8)), Points(choices=(9.0, 0.5, 2.0)), Points(value=3.0)])
MAKE = {
    "adaptive": lambda space, seed: Adaptive(space, seed, AdaptiveKeys(start=0, uniform=0.2, sharpness=3.0)),
    "breed": lambda space, seed: Breed(space, seed, BreedKeys()),
    "power": lambda space, seed: Power(space, seed, PowerKeys()),
}


@pytest.fixture(params=list(MAKE))
def make(request):
    return MAKE[request.param]


def losses_of(values):
    """Return losses as if all values were one batch."""
    excess = np.maximum(0.0, (values - values.mean()) / values.std())
    difficulty = np.log(values) - np.log(values).mean()
    return {"mean": values, "last": values, "max": values, "excess": excess, "difficulty": difficulty}


def made_up(parameters):
    """Return losses that are large in a disc of about a tenth of the plane."""
    unit = PLANE.unit(parameters)
    return np.exp(-(((unit - [0.75, 0.3]) ** 2).sum(axis=1)) / 0.02) + 0.05


def run(sampler, generations, each, first=0, observed=()):
    """Return the rows of all generations; after each, report the losses of the last 60 simulations."""
    rows = list(observed)
    for _ in range(generations):
        rows += list(sampler.sample(each)[0])
        ids = np.arange(max(0, first + len(rows) - 60), first + len(rows))
        sampler.observe(ids, np.array(rows)[ids], losses_of(made_up(np.array(rows)[ids])))
    return np.array(rows)


@pytest.mark.parametrize("seed", range(3))
def test_simulations_concentrate_where_the_loss_is_large(make, seed):
    worst = np.quantile(made_up(PLANE.scale(np.random.default_rng(9).random((20000, 2)))), 0.9)
    rows = run(make(PLANE, seed), generations=50, each=8)
    assert ((rows >= [-1, 100]) & (rows <= [1, 500])).all()
    # A second-degree polynomial cannot follow such a small hill closely.
    assert (made_up(rows[200:]) > worst).mean() > (2 if "Adaptive" in repr(make(PLANE, seed)) else 3) * 0.1


def test_restored_sampler_draws_the_same_as_an_uninterrupted_one(make):
    rows = run(make(PLANE, 5), generations=12, each=4)
    before = make(PLANE, 5)
    half = run(before, generations=6, each=4)
    after = make(PLANE, 6)
    after.load_state_dict(pickle.loads(pickle.dumps(before.state_dict())))
    np.testing.assert_array_equal(run(after, generations=6, each=4, observed=half), rows)


def test_state_from_before_the_first_draw_is_restored(make):
    after = make(PLANE, 6)
    after.load_state_dict(pickle.loads(pickle.dumps(make(PLANE, 5).state_dict())))
    np.testing.assert_array_equal(after.sample(5)[0], make(PLANE, 5).sample(5)[0])


@pytest.mark.parametrize("seed", range(20))
def test_no_point_is_drawn_again_after_rows_that_the_state_lacks(make, seed):
    """The rows were drawn with losses that are lost, so the same number of draws would use other random numbers."""
    random = np.random.default_rng(seed)
    state, rows = make(PLANE, seed), np.zeros((0, 2))
    kept = state.state_dict() if seed % 4 == 0 else None
    final = []
    for generation in range(int(random.integers(2, 9))):
        if generation == 1 and kept is None:
            kept, final = pickle.loads(pickle.dumps(state.state_dict())), []
        final += list(state.sample(int(random.integers(1, 12)))[0])
        rows = np.concatenate([rows, final[len(rows) :]]) if kept is None else rows
        known = np.array([*rows, *final])
        state.observe(np.arange(len(known)), known, losses_of(random.random(len(known)) + 0.1))
    after = make(PLANE, seed)
    after.load_state_dict(kept)
    after.skip(np.array(final))
    more = [*final, *rows, *(row for _ in range(30) for row in after.sample(3)[0])]
    assert len({tuple(row) for row in more}) == len(more)


def test_adaptive_sampler_continues_its_sequence_behind_the_rows_that_the_state_lacks():
    """Also behind a row that is not of the sequence, which somebody has changed."""
    sampler, after = MAKE["adaptive"](PLANE, 4), MAKE["adaptive"](PLANE, 4)
    rows = run(sampler, generations=10, each=4)
    passed = sampler.state_dict()["passed"]
    assert passed > 60  # many points were skipped
    rows[7] = [0.123, 250.0]
    after.skip(rows)
    assert after.state_dict()["passed"] == passed and after.state_dict()["drawn"] == 40


def test_integers_choices_and_constants_keep_allowed_values(make):
    sampler, rows = make(MIXED, 0), np.zeros((0, 4))
    for _ in range(30):
        drawn, rules, parents, *_ = sampler.sample(4)
        assert len(rules) == 4 and all(-1 <= parent < len(rows) for parent in parents)
        rows = np.concatenate([rows, drawn])
        sampler.observe(np.arange(len(rows)), rows, losses_of(rows[:, 0] * rows[:, 1] + 0.01))
    assert set(rows[:, 1]) <= set(range(1, 9)) and set(rows[:, 2]) <= {9.0, 0.5, 2.0} and set(rows[:, 3]) == {3.0}
    assert rows[60:, 1].mean() > 5.5 and rows[60:, 0].mean() > 0.6


def test_draws_are_uniform_before_any_losses(make):
    rows, rules, parents, *_ = make(PLANE, 1).sample(400)
    assert set(rules) <= {"uniform", "sobol"} and set(parents) == {-1}
    np.testing.assert_allclose(PLANE.unit(rows).mean(axis=0), 0.5, atol=0.06)


def test_the_bred_share_rises_and_children_are_near_their_parents():
    sampler = Breed(PLANE, 0, BreedKeys(start=0.2, end=0.8, breakpoint=4000, sigma=0.05))
    parents = np.array([[-1.0, 100.0], [0.5, 300.0]])
    sampler.observe(np.array([3, 8]), parents, {"excess": np.array([1.0, 0.0])})
    shares = []
    for _ in range(8):
        rows, rules, found, *_ = sampler.sample(1000)
        bred = np.array(rules) == "bred"
        assert set(np.array(found)[bred]) == {3}  # the other one is no worse than the mean
        shares.append(bred.mean())
        distance = PLANE.unit(rows[bred])  # from the corner, where the parent is
        assert (distance >= 0).all() and (distance < 0.3).all() and (distance > 0).any(axis=1).all()
        assert 0.01 < distance.mean() < 0.025  # 0.04 if all kept the distance that was drawn first
    np.testing.assert_allclose(shares, [0.2, 0.35, 0.5, 0.65, *[0.8] * 4], atol=0.06)


def test_bred_share_depends_on_simulations_not_on_generation_size():
    shares = []
    for each in (1, 10):
        sampler = Breed(PLANE, 0, BreedKeys(start=0.0, end=1.0, breakpoint=100))
        sampler.observe(np.array([0]), np.array([[0.0, 300.0]]), {"excess": np.array([1.0])})
        rules = [rule for _ in range(200 // each) for rule in sampler.sample(each)[1]]
        shares.append([np.mean([rule == "bred" for rule in part]) for part in (rules[:50], rules[50:100], rules[110:])])
    np.testing.assert_allclose(shares, [[0.25, 0.75, 1.0]] * 2, atol=0.15)


def adaptive(difficulty, seed=0, count=300, dimensions=2, **keys):
    """Return a sampler that knows the `difficulty` of uniform points."""
    sampler = Adaptive(Space([(0.0, 1.0)] * dimensions), seed, AdaptiveKeys(**keys))
    points = np.random.default_rng(seed).random((count, dimensions))
    known = difficulty(points)
    sampler.observe(np.arange(count), points, {"difficulty": known, "last": np.ones(count)})
    return sampler


@pytest.mark.parametrize("seed", range(4))
def test_density_of_an_adaptive_sampler_is_bounded_and_matches_its_draws(seed):
    chance = np.random.default_rng(seed)
    uniform, bound = chance.uniform(0.1, 0.9), chance.uniform(1.5, 9.0)
    slope = chance.uniform(1.0, 6.0, 2)
    sampler = adaptive(lambda points: points @ slope, seed, uniform=uniform, bound=bound, start=0)
    density = sampler.density(np.random.default_rng(9).random((40000, 2)))
    assert density.min() >= uniform and density.max() <= uniform + (1 - uniform) * bound + 1e-9
    assert density.mean() == pytest.approx(1.0, abs=0.05)
    rows, rules, _, weights = sampler.sample(4000)
    assert set(rules) == {"adaptive"}
    # The weighted mean over the rows is the mean over the square; the mean weight is 1.
    np.testing.assert_allclose(weights, 1 / sampler.density(rows))
    assert weights.mean() == pytest.approx(1.0, abs=0.05)
    assert (weights[:, None] * rows).mean(axis=0) == pytest.approx([0.5, 0.5], abs=0.03)
    for part in ((rows < 0.5).all(axis=1), (rows > 0.5).all(axis=1)):
        corner = np.full(2, 0.0 if rows[part].max() < 0.51 else 0.5)
        there = sampler.density(corner + 0.5 * np.random.default_rng(8).random((40000, 2)))
        expected = there.mean() / 4 / density.mean()
        assert part.mean() == pytest.approx(expected, abs=0.03)


def test_adaptive_sampler_draws_evenly_if_no_region_is_harder():
    noise = np.random.default_rng(3)
    even = adaptive(lambda points: noise.standard_normal(len(points)), start=0)
    density = even.density(np.random.default_rng(4).random((1000, 2)))
    assert density.max() < 1.3 and density.min() > 0.7
    begun = Adaptive(PLANE, 0, AdaptiveKeys(start=30))
    rows, rules, _, weights = begun.sample(40)
    assert set(rules) == {"sobol"} and (weights == 1).all()  # no losses are known yet
    begun.observe(np.arange(20), rows[:20], losses_of(made_up(rows[:20])))
    assert set(begun.sample(5)[1]) == {"adaptive"}


def test_difficulty_is_fitted_apart_from_its_trend_over_time():
    chance = np.random.default_rng(0)
    points = chance.random((200, 3))
    known = 2 * points[:, 0] - (2 * points[:, 1] - 1) ** 2 + 0.3 * chance.standard_normal(200)
    when = np.arange(200.0)
    at = chance.random((500, 3))
    expected = 2 * at[:, 0] - (2 * at[:, 1] - 1) ** 2
    for trend in (0.0, 5.0):
        found = fit(points, known - trend * when / 200, when)(at)
        assert (found - found.mean() - expected + expected.mean()).std() < 0.15


def test_adaptive_sampler_refuses_negative_losses():
    with pytest.raises(
        ValueError, match="needs losses of 0 or more, and simulation 7 has the loss -0.5. Pass stream.losses a squared"
    ):
        Adaptive(PLANE, 0, AdaptiveKeys()).observe(
            np.array([3, 7]), np.zeros((2, 2)), {"difficulty": np.zeros(2), "last": np.array([1.0, -0.5])}
        )


@pytest.mark.parametrize("exponent", [1.0, 2.0, 300.0])
def test_candidates_are_chosen_in_proportion_to_the_power_of_the_loss_nearby(exponent):
    sampler = Power(Space([(0.0, 1.0)]), 0, PowerKeys(candidates=20000, exponent=exponent))
    at = np.concatenate([0.25 + 0.001 * np.arange(10), 0.75 + 0.001 * np.arange(10)])
    sampler.observe(np.arange(20), at[:, None], {"mean": np.repeat([1.0, 3.0], 10)})
    rows, rules, parents, *_ = sampler.sample(1000)
    right = rows[:, 0] > 0.51
    assert set(rules) == {"power"} and (np.array(parents)[right] >= 10).all()
    np.testing.assert_allclose(right.mean(), 3**exponent / (1 + 3**exponent), atol=0.05)


def test_draws_stay_uniform_if_no_loss_is_positive():
    sampler = Power(Space([(0.0, 1.0)]), 0, PowerKeys())
    for values in (np.zeros(3), np.array([-1.0, -2.0, 0.0])):
        sampler.observe(np.arange(3), np.array([[0.1], [0.2], [0.3]]), {"mean": values})
        rows, rules, *_ = sampler.sample(2000)
        assert set(rules) == {"uniform"} and len(rows) == 2000


def test_the_newest_simulations_are_kept_with_their_newest_values():
    observed = Observed(1, window=3)
    observed.add(np.array([4, 2]), np.array([[0.4], [0.2]]), np.array([1.0, 2.0]))
    observed.add(np.array([2, 9, 7]), np.array([[0.2], [0.9], [0.7]]), np.array([5.0, 6.0, 7.0]))
    assert observed.ids.tolist() == [4, 7, 9] and observed.values.tolist() == [1.0, 7.0, 6.0]
    assert observed.points.tolist() == [[0.4], [0.7], [0.9]]


def test_scale_and_unit_are_inverse_to_each_other():
    unit = np.random.default_rng(0).random((50, 4))
    scaled = MIXED.scale(unit)
    np.testing.assert_allclose(MIXED.unit(scaled)[:, 0], unit[:, 0], atol=1e-12)
    np.testing.assert_array_equal(MIXED.scale(MIXED.unit(scaled))[:, 1:], scaled[:, 1:])
    wide = Space([(-1.7e308, 1.7e308)])
    np.testing.assert_allclose(wide.unit(wide.scale(unit[:, :1])), unit[:, :1], atol=1e-12)
