"""What trainers report about their datasets, and what the scheduler derives from it."""

from mpidata.loading.figures import PREFIX, Loaded, Tally, summary_of


class Scheduler:
    """Takes the reports of two trainers."""

    def __init__(self):
        self.loaded, self.events, self.messages = Loaded(2), [], 0

    def report(self, trainer):
        def take(name, value):
            assert name.startswith(PREFIX)
            self.messages += 1
            ended = self.loaded.take(trainer, name.removeprefix(PREFIX), value)
            self.events += [] if ended is None else [ended]

        return take


def test_batches_samples_and_waits_are_summed_and_epoch_ends_reported():
    scheduler = Scheduler()
    tallies = [Tally(scheduler.report(trainer), trainer == 0) for trainer in range(2)]
    assert scheduler.loaded.summary() == scheduler.loaded.progress(1.0) == scheduler.loaded.metrics() == {}
    for epoch in range(2):
        for trainer, tally in enumerate(tallies):
            tally.begin(epoch)
            for _ in range(3 + trainer):
                tally.batch(10, 0.25)
            tally.end()
    summary = {
        "epoch": 1,
        "batches": [6, 8],
        "samples": 140,
        "wait_s": [1.5, 2.0],
        "first_batch_s": 0.25,
        "parts_read_again": 0,
        "parts_without_rows": 0,
    }
    assert scheduler.loaded.summary() == summary
    assert scheduler.loaded.metrics() == {"samples": [60, 80], "wait_s": [1.5, 2.0]}
    progress = scheduler.loaded.progress(2.0)
    assert progress == {**summary, "per_second": 70.0} and summary_of(progress) == summary
    assert scheduler.events[-1] == {"trainer": 1, "epoch": 1, "batches": 8, "samples": 80, "wait_s": 2.0}
    assert [event["epoch"] for event in scheduler.events] == [0, 0, 1, 1]
    Tally(scheduler.report(0), True).begin(0)  # another dataset
    assert scheduler.loaded.summary()["epoch"] == 1


def test_reports_are_not_sent_for_each_batch():
    scheduler, now = Scheduler(), [0.0]
    tally = Tally(scheduler.report(0), True, clock=lambda: now[0])
    tally.begin(0)
    for _ in range(1000):
        now[0] += 0.001
        tally.batch(1, 0.0)
    assert scheduler.messages < 12 and scheduler.loaded.summary()["batches"][0] > 500
    tally.flush()
    assert scheduler.loaded.summary()["batches"] == [1000, 0]


def test_reading_progress_is_shown_once_all_three_numbers_have_arrived():
    scheduler, shown = Scheduler(), []
    report = scheduler.report(0)

    def look(name: str, value: float) -> None:
        report(name, value)
        shown.append(scheduler.loaded.progress(1.0))

    Tally(look, True, clock=lambda: 0.0).parts(2, 0, 7)
    assert shown == [{}, {}, {"reading": {"parts": 7, "counted": 2, "read": 0}}]


def test_reading_progress_is_shown_until_the_first_batch():
    scheduler, now = Scheduler(), [0.0]
    tally, other = (Tally(scheduler.report(t), t == 0, clock=lambda: now[0]) for t in range(2))
    for counted, read in [(2, 0), (7, 0), (7, 3)]:
        now[0] += 1
        tally.parts(counted, read, 7)
        other.parts(1, 1, 1)
        assert scheduler.loaded.progress(now[0]) == {"reading": {"parts": 7, "counted": counted, "read": read}}
    tally.wait(3.0)
    tally.begin(0)
    tally.batch(5, 2.0)
    tally.parts(7, 7, 7)
    tally.read_again(2)
    other.read_again(2)
    tally.flush()
    other.flush()
    summary = scheduler.loaded.summary()
    assert summary["first_batch_s"] == 5.0 and summary["wait_s"] == [5.0, 0.0] and summary["parts_read_again"] == 2
    assert "reading" not in scheduler.loaded.progress(9.0)
