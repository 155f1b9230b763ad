"""Which samples the trainers use in a step: exchanged with it, whether or not there is room for all."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mpidata.trainer.elastic.streams.drawn import Drawn


class Attempts:
    """Operations of several trainers, done one after the other in this process."""

    def __init__(self) -> None:
        self.communicator = self
        self.sent: list[NDArray[np.int64]] = []
        self.into: list[Any] = []
        self.messages = 0

    def Iallgather(self) -> None:
        """Stand in for the call."""

    Iallgatherv = Iallgather

    def post(self, _: Callable[..., Any], own: NDArray[np.int64], everything: Any) -> None:
        self.sent.append(own)
        self.into.append(everything[0] if isinstance(everything, list) else everything)
        self.messages += 1

    def exchange(self) -> None:
        for into in self.into:
            into.reshape(-1)[:] = np.concatenate([own.reshape(-1) for own in self.sent])
        self.sent, self.into = [], []

    def wait(self) -> bool:
        return True


def step(trainers: list[Drawn], batches: list[list[dict[str, Any]]]) -> int:
    """Make a step; return how many messages each trainer has sent."""
    attempts: Any = Attempts()
    for trainer, drawn in zip(trainers, batches, strict=True):
        for batch in drawn:
            trainer.take(batch)
        trainer.send(attempts, [4, 5, 7])
    attempts.exchange()
    for trainer in trainers:
        assert trainer.send_rest(attempts)
    attempts.exchange()
    for trainer in trainers:
        trainer.count()
    return attempts.messages // len(trainers)


def batch_of(*samples: tuple[int, int]) -> dict[str, Any]:
    simulation, of = torch.tensor(samples).T
    return {"simulation": simulation, "step": of, "u": torch.zeros(len(samples))}


def test_all_trainers_receive_the_samples_of_a_step() -> None:
    told: list[list[list[int]]] = []
    counts: list[list[list[int]]] = []

    def tell(samples: NDArray[np.int64], drawn: NDArray[np.int64]) -> None:
        told.append(samples.tolist())
        counts.append(drawn.tolist())

    trainers = [Drawn(tell) for _ in range(3)]
    for trainer in trainers:
        trainer.room = 2
    single = {"simulation": torch.tensor(7), "step": torch.tensor(1)}
    assert step(trainers, [[batch_of((1, 2), (3, 4))], [single], []]) == 1
    assert told == [[[1, 2], [3, 4], [7, 1]]] * 3
    told.clear()
    assert step(trainers, [[], [], []]) == 1 and told == [[]] * 3  # samples that counted once do not come again
    told.clear()
    many = [[batch_of((1, 5), (1, 6)), batch_of((1, 7), (1, 8))], [single], [batch_of((2, 9))]]
    assert step(trainers, many) == 2
    assert told == [[[1, 5], [1, 6], [1, 7], [1, 8], [7, 1], [2, 9]]] * 3
    assert step(trainers, many) == 1  # from now on there is room for as many
    assert told[3:] == told[:3]
    assert counts[:3] == [[[4, 2], [5, 1], [7, 0]]] * 3 and counts[-6:] == [[[4, 4], [5, 1], [7, 1]]] * 6
