from mpidata.scheduler.figures.summary import CAPACITY, DRAWN, RECEIVED
from mpidata.scheduler.relief import Relief

STARVED, FULL, FINE = (True, False), (False, True), (False, False)


class Job:
    """Trainers whose statuses come in turn."""

    def __init__(self, trainers: int = 2, capacity: int = 100) -> None:
        self.relief = Relief(trainers)
        self.received = [0] * trainers
        self.drawn = [0] * trainers
        self.capacity = [capacity] * trainers

    def tell(self, *states: tuple[bool, bool]) -> list[tuple[int, int, int]]:
        found = []
        for trainer, (starved, full) in enumerate(states):
            statistics = [0] * 8
            statistics[RECEIVED], statistics[DRAWN] = self.received[trainer], self.drawn[trainer]
            statistics[CAPACITY] = self.capacity[trainer]
            found += self.relief.status(trainer, starved, full, statistics)
        return found


def test_full_trainer_is_relieved_by_a_quarter_after_two_statuses() -> None:
    job = Job()
    assert job.tell(STARVED, FULL) == []
    assert job.tell(STARVED, FULL) == [(1, 25, 0)]


def test_a_small_buffer_gets_at_least_one_sample() -> None:
    job = Job(capacity=2)
    assert job.tell(FULL, STARVED) == []
    assert job.tell(FULL, STARVED) == [(0, 1, 1)]


def test_relief_grows_with_the_capacity_and_needs_two_statuses_again() -> None:
    job = Job()
    job.tell(STARVED, FULL)
    assert job.tell(STARVED, FULL) == [(1, 25, 0)]
    job.capacity[1] = 125
    assert job.tell(STARVED, FULL) == []
    assert job.tell(STARVED, FULL) == [(1, 31, 0)]


def test_no_relief_while_samples_are_received_or_drawn() -> None:
    for counter in ("received", "drawn"):
        for trainer in (0, 1):
            job = Job()
            for _ in range(10):
                getattr(job, counter)[trainer] += 1
                assert job.tell(STARVED, FULL) == []


def test_no_relief_without_both_a_starved_and_a_full_trainer() -> None:
    job = Job()
    for states in ((STARVED, STARVED), (FULL, FULL), (FINE, FULL), (STARVED, FINE)):
        assert [job.tell(*states) for _ in range(4)] == [[]] * 4
        job.tell(FINE, FINE)


def test_every_full_trainer_is_relieved() -> None:
    job = Job(trainers=3)
    assert job.tell(FULL, STARVED, FULL) == []
    assert sorted(job.tell(FULL, STARVED, FULL)) == [(0, 25, 1), (2, 25, 1)]
