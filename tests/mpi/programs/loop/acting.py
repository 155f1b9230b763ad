"""Random cancels and publishes of a training script, reproducible from a seed."""

import json
import os
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from published.values import arrays

import mpidata


class Acting:
    """Acts between batches, and writes the ids that were accepted to acts-TRAINER.jsonl.

    Parameters
    ----------
    options : dict
        seed; simulations, validation: their numbers; cancels: probability per batch, always 1 in the third;
        most: limit of cancelling calls; publishes: probability per batch, the same on all trainers; elements: size of
        the published arrays; first: 1 to publish also before the first batch, else 0; deaths: number expected, each
        adds a letter to the file kills; spacing: most batches between two deaths; trainers: their number.
    trainer : int
        Number of this trainer.
    cancel : callable
        Takes ids, and returns the accepted ones.
    made : int
        Batches that the others drew before this trainer joined.
    """

    def __init__(
        self, options: dict[str, Any], trainer: int, cancel: Callable[[Any], list[int]], made: int = 0
    ) -> None:
        self._options, self._trainer, self._cancel = options, trainer, cancel
        self._file = open(f"acts-{trainer}.jsonl", "a")  # noqa: SIM115
        self._seen: list[int] = []
        self._calls = self._taken = 0
        self._version = options["first"] * (made > 0) + sum(self._publishes(number) for number in range(1, made + 1))
        if options["first"] and not made:
            self._publish()

    def act(self, number: int, drawn: list[int]) -> None:
        """Act after a batch with samples of these simulations."""
        options = self._options
        self._seen += [one for one in drawn if one not in self._seen]
        chosen = random.Random(f"{options['seed']} {self._trainer} {number}")
        if (number == 3 or chosen.random() < options["cancels"] and self._may_cancel()) and self._calls < options[
            "most"
        ]:
            self._calls += 1
            ids = [self._choose(chosen, drawn) for _ in range(chosen.randint(1, 3))]
            ids += [drawn[-1]] if number == 3 else []
            if chosen.random() < 0.3:
                thread = threading.Thread(target=self._ask, args=(ids,))
                thread.start()
                thread.join()
            else:
                self._ask(ids)
        if self._publishes(number):
            self._publish()
        self._wait_for_deaths(number)

    def _may_cancel(self) -> bool:
        """Limit cancels to a third of the simulations, over all trainers, until all deaths have come."""
        options = self._options
        may = options["simulations"] // (3 * options["trainers"])
        return self._taken < may or os.path.getsize("kills") >= options["deaths"]

    def _publishes(self, number: int) -> bool:
        return random.Random(f"{self._options['seed']} {number}").random() < self._options["publishes"]

    def _publish(self) -> None:
        self._version += 1
        version = mpidata.publish(arrays(self._version, self._options["elements"]))
        assert version == self._version, (version, self._version)

    def _wait_for_deaths(self, number: int) -> None:
        """Wait until the deaths due by this batch have come, so that all come before the job ends."""
        wanted = min(self._options["deaths"], max(0, number - 2) // self._options["spacing"])
        deadline = time.monotonic() + 60
        while wanted and os.path.getsize("kills") < wanted:
            assert time.monotonic() < deadline, f"{os.path.getsize('kills')} died, {wanted} were to by batch {number}"
            time.sleep(0.02)

    def _choose(self, chosen: random.Random, drawn: list[int]) -> int:
        simulations, validation = self._options["simulations"], self._options["validation"]
        return {
            "running": drawn[-1],
            "seen": chosen.choice(self._seen),
            "any": chosen.randrange(simulations),
            "last": simulations - 1 - chosen.randrange(1 + simulations // 3),
            "unknown": simulations + validation + chosen.randrange(3),
            "negative": -1 - chosen.randrange(3),
            "validation": simulations + chosen.randrange(max(1, validation)),
        }[chosen.choice(["running", "running", "seen", "any", "last", "unknown", "negative", "validation"])]

    def _ask(self, ids: list[int]) -> None:
        self._note(asks=ids)  # a trainer killed in the call notes nothing more
        taken = self._cancel(ids)
        again = self._cancel(ids)
        self._taken += len(taken)
        self._note(taken=taken, again=again)

    def _note(self, **what: list[int]) -> None:
        print(json.dumps(what), file=self._file, flush=True)
