"""The trainers' answers when they are asked whether they can join a spawned group, and when they have been told to."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Answers"]


class Answers:
    """The answers of all trainers to the last question. Trainers that have died since are not waited for.

    Parameters
    ----------
    trainers : int
        Number of trainers at the start.
    lives : callable
        Returns whether the trainer of this number is alive.
    """

    def __init__(self, trainers: int, lives: Callable[[int], bool]) -> None:
        self._trainers, self._lives = trainers, lives
        self._answers: dict[int, int] = {}
        self._asked: set[int] = set()

    def ask(self) -> None:
        """Note that all living trainers are asked; each answers once."""
        self._answers.clear()
        self._asked = {trainer for trainer in range(self._trainers) if self._lives(trainer)}

    def take(self, trainer: int, answer: int) -> None:
        """Keep a trainer's answer."""
        self._answers[trainer] = answer

    @property
    def missing(self) -> list[int]:
        """Trainers that have not answered."""
        return [trainer for trainer in sorted(self._asked - self._answers.keys()) if self._lives(trainer)]

    @property
    def lost(self) -> list[int]:
        """Trainers that have died since."""
        return [trainer for trainer in sorted(self._asked) if not self._lives(trainer)]

    def any_says(self, answer: int) -> bool:
        """Whether any trainer has given this answer."""
        return answer in self._answers.values()

    def all_say(self, answer: int) -> bool:
        """Whether all that were asked, and are alive, have given this answer."""
        return bool(self._asked) and all(
            self._answers.get(trainer) == answer for trainer in self._asked if self._lives(trainer)
        )
