"""A trainer's position in the datasets that all share, as it is reported to the others."""

import numpy as np

from mpidata.trainer.elastic.change import Change, Place
from mpidata.trainer.elastic.meeting import MOST_DATASETS
from mpidata.trainer.elastic.shared_datasets import SharedDatasets


class Dataset:
    """A dataset at a given position."""

    may_be_dealt_anew = True

    def __init__(self, *place: int) -> None:
        self.at = place

    def place(self) -> Place:
        return self.at[0], self.at[1]

    def lose(self, lost: dict[int, Place], change: Change) -> None:
        pass

    def deal_anew(self, number: int, trainers: int) -> None:
        pass


def test_epoch_end_counts_drawn_batches_of_its_dataset_only() -> None:
    shared, one, other = SharedDatasets(), Dataset(2, 5), Dataset(0, 7)
    shared.add(one)
    shared.add(other)
    stepped = np.zeros((MOST_DATASETS + 1, 2), np.int64)
    stepped[:2] = [[2, 4], [0, 6]]
    assert shared.places()[:3].tolist() == [[2, 5], [0, 7], [0, 0]]
    assert shared.at_end(one, stepped)[:3].tolist() == [[2, 5], [0, 6], [0, 0]]
    assert shared.at_end(other, None)[:3].tolist() == [[0, 0], [0, 7], [0, 0]]
    assert shared.at_end(one, stepped).shape == (MOST_DATASETS, 2)
