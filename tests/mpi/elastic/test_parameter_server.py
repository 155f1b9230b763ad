"""Parameter servers match DistributedDataParallel without staleness, are never staler than allowed, and resume."""

import random
import re
import signal
from collections.abc import Callable
from typing import Any

import pytest
import torch
from exact_job import books
from jobs import JobFolder, Result, ranks_that, read_lines, variables_of
from served_job import check, complete, write_job
from waiting import wait_until

from mpidata.servers.table import Rows


def test_servers_without_staleness_match_ddp(folder: JobFolder) -> None:
    write_job(folder, ddp=True)
    for lines in complete(folder.run(timeout=120)):
        difference, end = lines[-1], lines[-2]
        assert end["end"] == end["version"] == 50, lines
        assert difference["apart"] <= 1e-6, lines


@pytest.mark.parametrize("data", [pytest.param("files", marks=pytest.mark.full), "stream"])
def test_uneven_trainers_stay_within_the_allowed_staleness(folder: JobFolder, data: str) -> None:
    write_job(folder, data=data, staleness=8, pauses_s={"1": 0.02}, optimizer="Adam")
    written = complete(folder.run(timeout=120))
    pulls = [[line for line in lines if "pull" in line] for lines in written]
    apart = [line["pull"] - (line["version"] - line["pull"]) for line in pulls[0]]  # the version counts all pushes
    assert max(apart) <= 8 and max(line["ahead"] for line in pulls[0]) <= 8, apart
    assert max(apart) >= 4, apart  # so the fast trainer did not wait in each step
    pushes = sum(lines[-1]["end"] for lines in written)
    assert pushes == 100 if data == "files" else pushes > 100, written
    assert max(lines[-1]["version"] for lines in written) == pushes, written
    early = {
        lines[0]["first"] for lines in written if lines[0]["version"] == 0
    }  # a late trainer gets the newest weights
    assert len(early) == 1, written


def kill_server(folder: JobFolder, result_of: Callable[[], Result], number: int, by: int = signal.SIGKILL) -> None:
    """Kill or stop a server once there is a checkpoint of a batch after the first one."""

    def has_checkpoint() -> bool:
        path = result_of().run
        events = read_lines(path / "events.jsonl") if path and (path / "events.jsonl").exists() else []
        return any(event["event"] == "checkpoint" and event["batch"] > 0 for event in events)

    wait_until(has_checkpoint, 60)
    servers = ranks_that(folder.path, lambda rank: "mpidata.server" in rank.cmdline())
    assert len(servers) == 2
    sorted(servers, key=lambda rank: int(variables_of(rank)["OMPI_COMM_WORLD_RANK"]))[number].send_signal(by)


@pytest.mark.full
@pytest.mark.parametrize("number", [1, 0])
def test_job_resumes_with_another_number_of_servers_after_a_server_death(folder: JobFolder, number: int) -> None:
    write_job(folder, every_s=0.3, optimizer="Adam", epochs=3, pauses_s={"0": 0.06, "1": 0.05})
    process = folder.start()
    kill_server(folder, lambda: folder.result(0, "", 0.0), number)
    result = folder.finish(process, 60, 0.0)
    folder.assert_nothing_left()
    assert result.status != 0 and result.run is not None, result.logs()
    assert f"Server {number} (rank {4 + number}) was killed by SIGKILL" in result.output, result.output
    written = complete(folder.resume(result.run, "--set", "servers.ranks=3", timeout=120))
    weights = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    table = Rows(50, 3, 7).draw(0, 50).requires_grad_()
    optimizer, sparse = torch.optim.Adam([weights], lr=1e-3), torch.optim.SparseAdam([table], lr=1e-3)
    steps = [_that_count(lines) for lines in written]
    assert len(steps[0]) == len(steps[1]) == 75, written
    for both in zip(*steps, strict=True):
        weights.grad = torch.full_like(weights, sum(sum(rows) / len(rows) for rows in both) / 2)
        optimizer.step()
        used = torch.tensor([row % 50 for rows in both for row in rows]).unsqueeze(0)
        table.grad = torch.sparse_coo_tensor(used, torch.full((8, 3), 1 / 8), (50, 3), check_invariants=True).coalesce()
        sparse.step()
    for lines in written:
        torch.testing.assert_close(torch.tensor(lines[-1]["embedding"]), table.detach())
        assert lines[-1]["version"] == 75, lines
        torch.testing.assert_close(torch.tensor(lines[-1]["weight"], dtype=torch.float64), weights.detach())


@pytest.mark.full
@pytest.mark.parametrize("elastic", [False, True])
def test_stopped_server_ends_the_job_like_a_dead_server(folder: JobFolder, elastic: bool) -> None:
    pauses_s = {"0": 0.06, "1": 0.05}
    write_job(folder, every_s=0.3, epochs=1000, pauses_s=pauses_s, elastic=elastic, timeout_s=2)
    process = folder.start()
    kill_server(folder, lambda: folder.result(0, "", 0.0), 1, signal.SIGSTOP)
    result = folder.finish(process, 60, 0.0)
    folder.assert_nothing_left()
    assert result.status == 1 and result.run is not None, result.logs()
    said = r"Server 1 \(rank 5\) was silent for \d s, longer than trainers.timeout_s allows. Its output is in"
    assert re.match(said, result.summary["error"]), result.logs()
    assert result.summary["died"] and f"mpidata run --resume {result.run}" in result.summary["error"], result.summary
    assert result.summary["servers"]["ranks"] == 2 and result.summary["servers"]["pushes"] > 0, result.summary


@pytest.mark.full
def test_untrained_rows_of_a_script_that_ends_early_are_reported(folder: JobFolder) -> None:
    write_job(folder, staleness=8, stops={"1": 3}, epochs=1, optimizer="Adagrad")
    result = folder.run(timeout=120)
    assert result.status == 0 and result.summary["status"] == "stopped", result.logs()
    assert result.summary["reason"] == "trainer 1 left the job in the middle of an epoch, after 3 batches"
    written = books(result, 2)
    drawn = [sum(len(line["rows"]) for line in lines if "rows" in line) for lines in written]
    assert drawn == [100, 12] and result.summary["loaded"]["untrained"] == 88, (drawn, result.summary)
    assert result.summary["servers"] == {"ranks": 2, "pushes": 28}, result.summary
    assert "88 rows, which a trainer left" in result.output and "2, 28 pushes" in result.output, result.output
    logs = "".join(result.log("server", number) for number in range(2))
    assert "Sparse invariant" not in logs, logs


def _that_count(lines: list[dict[str, Any]]) -> list[list[int]]:
    """Return the rows of the steps, without those that the second start repeated."""
    second = max(i for i, line in enumerate(lines) if "resumed" in line)
    assert lines[second]["version"] > 0, lines
    before = [line["rows"] for line in lines[:second] if line.get("pull", 75) < lines[second]["version"]]
    return before + [line["rows"] for line in lines[second:] if "pull" in line]


@pytest.mark.parametrize(
    ("kills", "staleness"),
    [
        ({"0": "push:7"}, 4),  # server 0 has its part of the push, the other one does not
        pytest.param({"2": "push:8"}, 0, marks=pytest.mark.full),  # both servers may have it
        pytest.param({"1": "push:3", "0": "push:21"}, 2, marks=pytest.mark.full),
    ],
)
def test_interrupted_push_counts_fully_or_its_rows_are_pushed_again(
    folder: JobFolder, kills: dict[str, str], staleness: int
) -> None:
    run_with_deaths(folder, kills, staleness=staleness, pauses_s={"2": 0.03})


@pytest.mark.full
@pytest.mark.parametrize("seed", range(8))
def test_job_survives_random_deaths_in_pushes(folder: JobFolder, seed: int) -> None:
    dice = random.Random(seed)
    trainers = dice.randint(2, 4)
    dying = dice.sample(range(trainers), dice.randint(1, min(2, trainers - 1)))
    kills = {str(trainer): f"push:{dice.randint(1, 60)}" for trainer in dying}
    pauses_s = {str(trainer): dice.choice([0, 0.003, 0.02]) for trainer in range(trainers)}
    run_with_deaths(folder, kills, trainers, staleness=dice.randint(0, 5), pauses_s=pauses_s)


def run_with_deaths(folder: JobFolder, kills: dict[str, str], trainers: int = 3, **options: Any) -> None:
    """Run a job whose trainers die, and check that the rows that each had not pushed come again."""
    job = write_job(folder, trainers=trainers, elastic=True, kills=kills, **{"every_s": 0.3} | options)
    result = folder.run(timeout=120)
    folder.assert_nothing_left()
    check(job, result)
    assert sorted(result.summary["lost_trainers"]) == sorted(map(int, kills)), result.logs()
