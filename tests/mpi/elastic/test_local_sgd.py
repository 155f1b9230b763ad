"""LocalSGD where trainers are uneven, die, come and leave: each sample counts once, the weights are the same on all."""

from exact_job import books
from jobs import JobFolder
from local_job import check, run, trained


def test_a_death_in_an_average_and_a_spare(folder: JobFolder) -> None:
    job, result = run(folder, {"1": "average:4"}, spares=1, joins=1, pauses_s={"2": 0.02})
    check(job, result)
    assert result.summary["lost_trainers"] == [1] and result.summary["joined_trainers"] == [3], result.logs()


def test_a_death_between_averages_of_a_stream(folder: JobFolder) -> None:
    job, result = run(folder, {"0": "7 SIGKILL"}, "stream", every=4, pauses_s={"2": 0.01}, outer=True)
    check(job, result)
    assert result.summary["lost_trainers"] == [0], result.logs()


def test_trainers_that_stop_early_average_until_all_are_done(folder: JobFolder) -> None:
    job, result = run(folder, {}, elastic=False, every=4, epochs=1, stops={"0": 2, "1": 6})
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    written = books(result, 3)
    counts = trained(written, result.logs())
    assert sum(counts[0].values()) == 8 + 24 + 36 - 2, (
        counts
    )  # of 100 rows in batches of 4, the last one of each shorter
    averages = [[line["average"] for line in lines if "average" in line] for lines in written]
    assert averages[0] == averages[1] == averages[2] and len(averages[0]) >= 3, averages
