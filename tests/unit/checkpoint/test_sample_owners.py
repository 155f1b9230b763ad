"""How another number of trainers shares the samples of a checkpoint."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from trainers import RestoringLibrary, Sample, plan_of, write_trainer

from mpidata.checkpoint.restore import restore
from mpidata.checkpoint.sample_owners import _shares


@pytest.mark.parametrize(
    ("samples", "received", "shares"),
    [
        (7, [5, 3, 3], [4, 1, 2]),
        (9, [0, 0, 0], [3, 3, 3]),
        (2, [10, 1, 4], [2, 0, 0]),
        (0, [3, 2], [0, 0]),
        (12, [10, 9, 1], [7, 5, 0]),
        (5, [4], [5]),
    ],
)
def test_shares_are_larger_for_trainers_that_received_more(
    samples: int, received: list[int], shares: list[int]
) -> None:
    assert _shares(samples, np.array(received)).tolist() == shares


@pytest.mark.parametrize(("before", "after"), [(2, 1), (2, 3), (3, 2), (1, 4)])
def test_all_trainers_have_equally_many_samples_to_draw(tmp_path: Path, before: int, after: int) -> None:
    """This holds whichever were drawn before; a trainer's surplus samples would never be drawn."""
    plan, chance, steps = plan_of(tmp_path, before, policy="firo", capacity=100), np.random.default_rng(before), 12
    held: set[Sample] = set()
    come: set[Sample] = set()
    for trainer in range(before):
        own = [(s, step) for s in range(6) for step in range(steps) if (s + step) % before == trainer]
        here = [sample for sample in own if sample[0] < 3 or (sample[0] < 5 and sample[1] < 7)]
        kept = [here[i] for i in sorted(chance.choice(len(here), len(here) // 2, replace=False))]
        ledger: dict[int, tuple[int, int, list[int]]] = {s: (steps, steps, []) for s in range(3)}
        ledger |= {s: (-1, 0, [step for of, step in here if of == s]) for s in (3, 4)}
        write_trainer(plan, trainer, [kept, [], [], []], ledger=ledger)
        held |= set(kept)
        come |= set(own) - set(here)
    after_plan = dataclasses.replace(plan, trainers=after, world=3 + after)
    libraries = [RestoringLibrary(after_plan, index) for index in range(after)]
    for index, library in enumerate(libraries):
        restore(after_plan, library, index)
    dealt = [sample for library in libraries for sample in library.places[0]]
    assert sorted(dealt) == sorted(held)
    totals = [
        len(library.places[0]) + sum(sum(sample) % after == index for sample in come)
        for index, library in enumerate(libraries)
    ]
    assert max(totals) - min(totals) <= 1
