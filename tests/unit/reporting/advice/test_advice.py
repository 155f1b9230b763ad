"""The cause and the numbers that the advice names, for realistic figures of jobs."""

from dataclasses import replace
from typing import Any

import pytest

from mpidata.reporting.advice.advice import CAUSES, advise
from mpidata.reporting.advice.measurements import LongSimulation, Measured, TrainerMeasured

BALANCED = Measured(
    run_s=60, startup_s=3, trainers=(TrainerMeasured(40, 0.05), TrainerMeasured(40, 0.03)), groups=8, computing=0.9,
    room=0.06, simulation=0.02, starting=0.02, capacity=200, batch=10.0,
    step_s=dict.fromkeys(range(8), 0.1),
)  # fmt: skip


def trainers(*figures: tuple[float, float]) -> tuple[TrainerMeasured, ...]:
    return tuple(TrainerMeasured(*one, number) for number, one in enumerate(figures))


@pytest.mark.parametrize(
    "cause, changes, numbers",
    [
        ("balanced", {}, {}),
        # 8 groups produce 80 samples/s, training consumes 320.
        ("solvers", {"trainers": trainers((40, 0.75), (40, 0.75)), "computing": 0.98, "room": 0.0, "starting": 0.0},
         {"groups": 31, "samples_s": 316}),
        # 8 groups could produce 320 samples/s.
        ("training", {"trainers": trainers((40, 0), (40, 0)), "computing": 0.23, "room": 0.73, "starting": 0.02},
         {"trainers": 8, "samples_s": 320}),
        # While buffers fill, the rate of samples says little about the groups.
        ("training", {"trainers": trainers((40, 0), (40, 0)), "computing": 0.5, "room": 0.5, "group_s": 40},
         {"trainers": 8, "samples_s": 320}),
        # No rank waits while small samples are on the way.
        ("training", {"trainers": trainers((40, 0), (40, 0)), "group_s": 20}, {"trainers": 4, "samples_s": 160}),
        ("long simulation", {"trainers": trainers((40, 0.6), (40, 0.6)), "long": LongSimulation(3, 20, 1, 0.5)}, {}),
        ("balanced", {"long": LongSimulation(3, 20, 1, 0.5)}, {}),
        ("buffer", {"trainers": trainers((40, 0.3), (40, 0.3)), "computing": 0.68, "room": 0.3, "capacity": 20},
         {"capacity": 160, "samples_s": 114}),
        ("disk", {"slowed": 0.6, "trainers": trainers((40, 0.6), (40, 0.6))}, {}),
        ("disk", {"recorded_after_s": 25.0}, {}),
        ("slow group", {"step_s": {**dict.fromkeys(range(8), 0.1), 5: 0.5}, "trainers": trainers((36, 0.4), (36, 0.4))},
         {"samples_s": 80}),
        ("slow trainer", {"trainers": trainers((20, 0.0), (20, 0.7)), "room": 0.5, "computing": 0.45},
         {"samples_s": 85}),
        ("too many groups", {"trainers": trainers((40, 0), (40, 0)), "groups": 32, "computing": 0.1, "room": 0.88},
         {"groups": 4, "samples_s": 80}),
        ("too many groups", {"simulation": 0.7, "computing": 0.3, "trainers": trainers((40, 0), (40, 0))},
         {"groups": 3}),
        ("short simulations", {"simulation": 0.7, "computing": 0.3, "simulations": 20_000}, {}),
        ("start-up", {"startup_s": 40}, {}),
        ("start-up", {"starting": 0.6, "computing": 0.3}, {}),
        ("unknown", {"trainers": ()}, {}),
        ("unknown", {"trainers": trainers((0, 1.0))}, {}),
    ],
)  # fmt: skip
def test_advice_names_the_cause_and_numbers(cause: str, changes: dict[str, Any], numbers: dict[str, float]) -> None:
    advice = advise(replace(BALANCED, **changes))
    assert (advice.cause, advice.sentences[0]) == (cause, f"{CAUSES[cause]}.")
    for name, value in numbers.items():
        assert getattr(advice, name) == pytest.approx(value, rel=0.03), name
    assert len(advice.sentences) > 1 and all(sentence.endswith((".", "%")) for sentence in advice.sentences)


def test_far_faster_solvers_are_advised_to_use_fewer_groups() -> None:
    fast = replace(BALANCED, trainers=trainers((40, 0)), computing=0.01, room=0.97, group_s=10_000, groups=2)
    advice = advise(fast)
    assert advice.cause == "training" and (advice.groups, advice.trainers, advice.samples_s) == (None, None, None)
    assert "could send 500 times as many samples as training takes. 1 group would be enough" in advice.sentences[-2]
    assert advise(replace(fast, group_s=100)).trainers == 5
    assert "500" in " ".join(advise(fast, 8).sentences)


def test_advice_balances_groups_and_trainers_for_the_given_cores() -> None:
    # A group produces 10.9 samples/s, a trainer consumes 41.
    advice = advise(BALANCED, 32)
    assert (advice.cause, advice.groups, advice.trainers) == ("balanced", 19, 5)
    assert advice.samples_s == pytest.approx(206, rel=0.01)
    assert "On 32 cores, 19 groups and 5 trainers" in advice.sentences[-1]
    assert advise(replace(BALANCED, ranks_per_group=8), 32).groups == 3
    assert "too few" in advise(BALANCED, 3).sentences[-1]


def test_replicas_are_counted_in_ranks() -> None:
    """A replica of 3 ranks needs 4 cores: one for each loop, and one for the receive thread of its first rank."""
    advice = advise(replace(BALANCED, ranks_per_replica=3), 32)
    assert advice.trainers is not None and advice.trainers % 3 == 0 and advice.groups is not None
    replicas = advice.trainers // 3
    assert 1 + 4 * replicas + advice.groups <= 32
    said = f"{replicas} replicas of 3 ranks ('trainers.ranks: {advice.trainers}') (4 cores each) would be best"
    assert said in advice.sentences[-1], advice.sentences
    assert "4 for a replica" in advise(replace(BALANCED, ranks_per_replica=3), 5).sentences[-1]


def test_cause_is_unknown_without_figures() -> None:
    assert advise(None).cause == "unknown"


def test_advice_for_a_buffer_in_bytes_is_in_bytes() -> None:
    held_back = replace(BALANCED, trainers=trainers((40, 0.3), (40, 0.3)), computing=0.68, room=0.3)
    advice = advise(replace(held_back, capacity=0, capacity_bytes=1 << 30))
    assert advice.cause == "buffer" and advice.capacity == "4 GiB"
    assert "the buffer of 1 GiB does not" in " ".join(advice.sentences)
    assert "`buffer.capacity: 4 GiB`" in advice.sentences[-1]
