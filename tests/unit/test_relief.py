from mpidata.relief import Relief
from mpidata.summary import DRAWN, RECEIVED

STARVED, FULL, FINE = (True, False), (False, True), (False, False)


class Job:
    """Two trainers whose statuses come every 0.2 s."""

    def __init__(self, capacity: int = 100, most: int = 1000) -> None:
        self.relief = Relief(trainers=2, capacity=capacity, most=most)
        self.now = 0.0
        self.received = [0, 0]
        self.drawn = [0, 0]

    def tell(self, *states: tuple[bool, bool]) -> list[tuple[int, int, int]]:
        self.now += 0.2
        found = []
        for trainer, (starved, full) in enumerate(states):
            statistics = [0] * 7
            statistics[RECEIVED], statistics[DRAWN] = self.received[trainer], self.drawn[trainer]
            found += self.relief.status(trainer, self.now, starved, full, statistics)
        return found

    def draw(self, times: int = 20) -> None:
        for _ in range(times):
            self.drawn = [n + 10 for n in self.drawn]
            self.received = [n + 100 for n in self.received]
            assert self.tell(FINE, FULL) == []


def test_stuck_twice_is_relieved() -> None:
    job = Job()
    job.draw()
    assert job.tell(STARVED, FULL) == []
    assert job.tell(STARVED, FULL) == [(1, 5, 0)]


def test_once_is_not_enough() -> None:
    job = Job()
    job.draw()
    job.received[1] += 1
    assert job.tell(STARVED, FULL) == []
    assert job.tell(FINE, FULL) == []
    assert job.tell(STARVED, FULL) == []
    assert job.tell(STARVED, FULL) == [(1, 5, 0)]


def test_not_while_something_moves() -> None:
    job = Job()
    job.draw()
    for moved in (1, 0):
        for _ in range(20):
            job.received[moved] += 1
            assert job.tell(STARVED, FULL) == []


def test_not_without_one_that_starves_or_one_that_is_full() -> None:
    job = Job()
    job.draw()
    for _ in range(20):
        assert job.tell(FULL, FULL) == []
    for _ in range(20):
        assert job.tell(STARVED, STARVED) == []


def test_a_slow_trainer_is_left_alone() -> None:
    job = Job()
    for _ in range(50):
        job.drawn[1] += 1
        for _ in range(10):  # 2 s a batch
            assert job.tell(STARVED, FULL) == []


def test_more_and_more_until_it_draws() -> None:
    job = Job()
    job.draw()
    given = [job.tell(STARVED, FULL) for _ in range(8)]
    assert [samples for found in given for _, samples, _ in found] == [5, 5, 10, 20]
    job.draw(1)
    job.tell(STARVED, FULL)
    assert job.tell(STARVED, FULL) == [(1, 5, 0)]


def test_no_more_than_most() -> None:
    job = Job(most=12)
    job.draw()
    given = [job.tell(STARVED, FULL) for _ in range(50)]
    assert sum(samples for found in given for _, samples, _ in found) == 12


def test_a_tiny_buffer_gets_one_sample() -> None:
    job = Job(capacity=4)
    job.draw()
    assert job.tell(STARVED, FULL) == []
    assert job.tell(STARVED, FULL) == [(1, 1, 0)]


def test_a_trainer_that_never_drew_gets_two_seconds() -> None:
    job = Job()
    job.received = [5, 5]
    found: list[tuple[int, int, int]] = []
    while not found:
        found = job.tell(STARVED, FULL)
        assert job.now < 3
    assert found == [(1, 5, 0)] and job.now > 2
