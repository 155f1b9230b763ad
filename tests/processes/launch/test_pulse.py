"""The shim mpidata-rank and its program's reports: silence, the end of the job, a finalize that hangs."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from launch_job import JOIN_AND_LEAVE, clean_environment, make_plan, pulse
from pulse_rank import FINALIZING, JOINED, LEFT, LOADER, LOST, STARTING, PulseRank
from waiting import stays, wait_until


@pytest.mark.parametrize("then", ["beat(); hang()", "beat(); os.kill(os.getpid(), signal.SIGSTOP)"])
def test_a_silent_solver_is_ended(shim: Path, tmp_path: Path, then: str) -> None:
    rank = PulseRank(shim, tmp_path, then, timeout_s=0.5)
    status, record = rank.end()
    assert status == -signal.SIGKILL and 0.5 < rank.seconds < 20
    assert record["silent_s"] >= 0.5 and record["signal"] == 9 and (record["joined"], record["told"]) == (True, False)
    assert "was silent for" in rank.stderr and "rank 3 (a solver of group 0)" in rank.stderr
    assert record["silent_key"] == "solvers.timeout_s" and "longer than solvers.timeout_s allows" in rank.stderr


@pytest.mark.parametrize("seconds", [2, 4])
def test_pause_of_a_rank_and_its_program_is_not_silence(shim: Path, tmp_path: Path, seconds: int) -> None:
    """As on a busy host, or if the job is suspended."""
    beats = "open('begun', 'w').close()\nfor _ in range(20):\n    beat()\n    work(0.05)\ntell(7)"
    rank = PulseRank(shim, tmp_path, beats, timeout_s=1)
    wait_until((tmp_path / "begun").exists, alive=rank.process)
    pid = rank.process.pid
    program = int(Path(f"/proc/{pid}/task/{pid}/children").read_text())
    for stopped in (pid, program):
        os.kill(stopped, signal.SIGSTOP)
    time.sleep(seconds)
    for stopped in (pid, program):
        os.kill(stopped, signal.SIGCONT)
        time.sleep(0.1)
    assert rank.end() == (0, {}), rank.stderr


def test_solver_may_be_silent_for_longer_before_its_first_step(shim: Path, tmp_path: Path) -> None:
    limits = {"timeout_s": 0.5, "start_timeout_s": 2.5}
    well = PulseRank(shim, tmp_path / "a", "beat(); work(1.5); tell(7)", JOINED | STARTING, **limits)
    hung = PulseRank(shim, tmp_path / "b", "beat(); hang()", JOINED | STARTING, **limits)
    late = PulseRank(shim, tmp_path / "c", "beat(); tell(1, time.monotonic_ns()); hang()", JOINED | STARTING, **limits)
    assert well.end() == (0, {})
    _, record = late.end()
    assert record["silent_key"] == "solvers.timeout_s" and record["silent_s"] < 2.5
    _, record = hung.end()
    assert record["silent_key"] == "solvers.start_timeout_s" and record["silent_s"] > 2.5


def test_program_stopped_before_its_first_step_is_ended_after_timeout_s(shim: Path, tmp_path: Path) -> None:
    then = "beat(); os.kill(os.getpid(), signal.SIGSTOP)"
    stopped = PulseRank(shim, tmp_path, then, JOINED | STARTING, timeout_s=0.5, start_timeout_s=15)
    _, record = stopped.end()
    assert record["silent_key"] == "solvers.timeout_s" and 0.5 < record["silent_s"] < 15 and record["stopped"] is True
    assert "s (a signal had stopped it), longer than" in stopped.stderr


def test_a_program_that_was_stopped_in_finalize_is_continued(shim: Path, tmp_path: Path) -> None:
    stopped = PulseRank(shim, tmp_path, "os.kill(os.getpid(), signal.SIGSTOP)", JOINED | LEFT | FINALIZING)
    assert stopped.end() == (0, {}) and stopped.seconds < 10


def test_silent_loader_is_ended_and_its_item_is_recorded(shim: Path, tmp_path: Path) -> None:
    working = "os.pwrite(fd, b'index 7 of \"a\"', 24); beat(); "
    hung = PulseRank(shim, tmp_path / "a", working + "hang()", rank=7, **LOADER)
    starting = PulseRank(shim, tmp_path / "b", "beat(); work(1.5); tell(7)", JOINED | STARTING, 7, **LOADER)
    patient = {**LOADER, "loader_timeout_s": 30}
    spawned = PulseRank(shim, tmp_path / "c", working + "sys.exit(3)", rank=0, words="--loader 5", **patient)
    assert starting.end() == (0, {})
    _, record = hung.end()
    assert (record["role"], record["loader"], record["rank"]) == ("loader", 0, 7)
    assert record["silent_key"] == "loaders.timeout_s" and record["item"] == 'index 7 of "a"'
    assert "rank 7 (loader 0)" in hung.stderr and (hung.run / "logs" / "rank-0007-loader-0.log").exists()
    _, record = spawned.end()
    assert (record["loader"], record["rank"], record["exit"]) == (5, None, 3)
    assert "loader 5, which was spawned" in spawned.stderr
    assert (spawned.run / "exits" / "loader-0005").exists() and (spawned.run / "logs" / "loader-0005.log").exists()


def test_mate_gets_its_rank_among_all_ranks_that_train(shim: Path, tmp_path: Path) -> None:
    then = "beat(); open('ranks', 'w').write(f\"{os.environ['RANK']} of {os.environ['WORLD_SIZE']}\"); sys.exit(3)"
    mate = PulseRank(shim, tmp_path, then, rank=6, world=11, ranks_per_replica=3)
    _, record = mate.end()
    assert (tmp_path / "ranks").read_text() == "5 of 6"
    assert (record["role"], record["trainer"], record["rank_in_replica"], record["exit"]) == ("mate", 1, 2, 3)
    assert "rank 6 (mate 2 of trainer 1)" in mate.stderr and (mate.run / "logs" / "rank-0006-mate-1-2.log").exists()


@pytest.mark.parametrize("then", ["hang()", "os.kill(os.getpid(), signal.SIGSTOP)"])
def test_a_silent_server_is_ended(shim: Path, tmp_path: Path, then: str) -> None:
    server = {"world": 8, "servers": 1, "rank": 7}
    hung = PulseRank(shim, tmp_path / "a", f"beat(); {then}", trainers_timeout_s=0.5, **server)
    well = PulseRank(shim, tmp_path / "b", "beat(); work(1.5); tell(7)", **server)  # its timeout is 600 s
    status, record = hung.end()
    assert status == -signal.SIGKILL and (record["role"], record["server"]) == ("server", 0)
    assert record["silent_key"] == "trainers.timeout_s" and record["silent_s"] >= 0.5
    assert "rank 7 (server 0)" in hung.stderr and "longer than trainers.timeout_s allows" in hung.stderr
    assert well.end() == (0, {})


def test_number_of_batches_of_a_trainer_is_recorded(shim: Path, tmp_path: Path) -> None:
    had = "os.pwrite(fd, struct.pack('=q', 12), 1016); os.kill(os.getpid(), signal.SIGKILL)"
    trainer, solver = (PulseRank(shim, tmp_path / str(rank), had, rank=rank) for rank in (1, 3))
    _, record = trainer.end()
    assert (record["role"], record["batches"]) == ("trainer", 12)
    assert "batches" not in solver.end()[1]


def test_abandoned_loader_that_was_spawned_is_ended(shim: Path, tmp_path: Path) -> None:
    rank = PulseRank(shim, tmp_path, "hang()", flags=0, rank=0, words="--loader 5", **LOADER)
    (rank.run / "given-up").mkdir()
    (rank.run / "given-up" / "loader-5").touch()
    _, record = rank.end()
    assert record["told"] and rank.seconds < 20


MATE_WAITS = """
import pathlib
file = pathlib.Path(os.environ["MPIDATA_RUN"], "waiting", "group-0")
beat()
end = time.monotonic() + 3
while time.monotonic() < end:
    file.parent.mkdir(exist_ok=True)
    file.touch()
    work(0.1)
"""


def test_silent_solvers_are_not_ended_while_their_group_waits_for_trainers(shim: Path, tmp_path: Path) -> None:
    (tmp_path / "b" / "run" / "waiting").mkdir(parents=True)
    (tmp_path / "b" / "run" / "waiting" / "group-0").touch()  # long ago
    well = PulseRank(shim, tmp_path / "a", MATE_WAITS + "tell(7)", timeout_s=1)
    hung = PulseRank(shim, tmp_path / "b", "beat(); hang()", timeout_s=1)
    other = PulseRank(shim, tmp_path / "c", MATE_WAITS.replace("group-0", "group-1"), timeout_s=1)
    then_hung = PulseRank(shim, tmp_path / "d", MATE_WAITS + "hang()", timeout_s=1)
    assert well.end() == (0, {})
    for rank, longest in ((hung, 5), (other, 5), (then_hung, 20)):
        _, record = rank.end()
        assert record["silent_key"] == "solvers.timeout_s" and rank.seconds < longest
    assert then_hung.seconds > 4


def test_unwatched_programs_may_be_silent(shim: Path, tmp_path: Path) -> None:
    cases = [
        ("beat(); work(1.5); tell(7)", 0, 3),  # has not joined
        ("work(1.5); tell(7)", JOINED, 3),  # gives no beat
        ("beat(); work(1.5)", JOINED | LEFT | FINALIZING, 3),
        ("beat(); work(1.5); tell(7)", JOINED, 1),  # a trainer
        ("for _ in range(15): beat(); work(0.1)\ntell(7)", JOINED, 3),
    ]
    ranks = [
        PulseRank(shim, tmp_path / str(number), then, flags, rank, timeout_s=0.5)
        for number, (then, flags, rank) in enumerate(cases)
    ]
    assert [rank.end() for rank in ranks] == [(0, {})] * len(cases)


def test_rank_of_an_earlier_start_of_the_run_is_ended(shim: Path, tmp_path: Path) -> None:
    rank = PulseRank(shim, tmp_path, "signal.signal(signal.SIGTERM, signal.SIG_IGN); hang()")
    assert stays(lambda: rank.process.poll() is None, 1)
    (rank.run / "exits").rename(rank.run / "exits-1")
    (rank.run / "exits").mkdir()
    assert rank.process.wait(20) == -signal.SIGKILL
    assert not list((rank.run / "exits").iterdir())


def test_program_is_ended_when_the_job_is_over(shim: Path, tmp_path: Path) -> None:
    rank = PulseRank(shim, tmp_path, "signal.signal(signal.SIGTERM, signal.SIG_IGN); hang()")
    assert stays(lambda: rank.process.poll() is None, 1)
    (rank.run / "over").touch()
    status, record = rank.end()
    assert status == -signal.SIGKILL and rank.seconds < 20
    assert record["told"] is True and record["signal"] == 9 and rank.stderr == ""
    # A program that then ends badly by itself is a consequence.
    other = PulseRank(shim, tmp_path / "b", "open(os.environ['MPIDATA_RUN'] + '/over', 'w'); sys.exit(3)")
    status, record = other.end()
    assert (status, record["told"], record["exit"], other.stderr) == (-signal.SIGKILL, True, 3, "")


def test_hanging_mpi_finalize_is_ended_after_the_death_of_a_rank(shim: Path, tmp_path: Path) -> None:
    left, left_lost = JOINED | LEFT | FINALIZING, JOINED | FINALIZING | LOST
    rank = PulseRank(shim, tmp_path / "a", "hang()", left, fault_tolerance="ulfm")
    plain = PulseRank(shim, tmp_path / "b", "work(2.5)", left)
    lost = PulseRank(shim, tmp_path / "c", "hang()", left_lost, fault_tolerance="ulfm")
    own = {"start": "spawn", "world": 3, "fault_tolerance": "ulfm"}
    spawned = PulseRank(shim, tmp_path / "d", "hang()", left, rank=1, words="--group 7", **own)
    status, record = lost.end()
    assert (status, record["told"], record["signal"]) == (-signal.SIGKILL, True, 9)
    assert stays(lambda: rank.process.poll() is None, 0.5)  # others may rightly keep it waiting
    (rank.run / "summary.json").touch()
    # and may work on when all is done
    assert stays(lambda: rank.process.poll() is None and spawned.process.poll() is None, 1.5)
    for waits in (rank, spawned):
        (waits.run / "exits" / "rank-0005.new").touch()
        assert waits.process.wait(20) == 0
        said = waits.process.stderr.read()
        assert "as happens if a rank has died" in said and said in next((waits.run / "logs").iterdir()).read_text()
    assert plain.end() == (0, {}) and plain.seconds > 2  # ending it would end the job


def test_rank_killed_with_its_mpidata_rank_is_detected_in_finalize(shim: Path, tmp_path: Path) -> None:
    left, saves = JOINED | LEFT | FINALIZING, JOINED | LEFT
    waits = PulseRank(shim, tmp_path, "hang()", left, fault_tolerance="ulfm")
    wait_until(lambda: (waits.run / "private" / "alive" / "rank-0003").exists())
    others = [  # of the same job
        subprocess.Popen([shim, waits.run], env=clean_environment(OMPI_COMM_WORLD_RANK=rank, OMPI_COMM_WORLD_SIZE="7"))
        for rank in ("4", "5")
    ]
    wait_until(lambda: len(list((waits.run / "private" / "alive").glob("rank-*"))) == 3)
    (waits.run / "summary.json").touch()
    assert stays(lambda: waits.process.poll() is None and not list((waits.run / "exits").iterdir()), 1.5)
    others[0].kill()
    assert waits.process.wait(20) == 0 and others[1].wait(20) == 0
    assert os.listdir(waits.run / "exits") == ["vanished-rank-0004"]
    assert os.listdir(waits.run / "private" / "alive") == ["rank-0004"]
    working = PulseRank(shim, tmp_path / "b", "work(2)", saves, fault_tolerance="ulfm")
    (working.run / "summary.json").touch()
    (working.run / "exits" / "vanished-rank-0004").touch()
    assert working.process.wait(20) == 0 and working.process.stderr.read().count("without MPI_Finalize")  # to its end


@pytest.mark.parametrize("then", ["sys.exit(0)", "sys.exit(3)", "os.abort()"])
def test_rank_of_a_lost_group_ends_silently(shim: Path, tmp_path: Path, then: str) -> None:
    rank = PulseRank(shim, tmp_path, then, JOINED | LOST)
    status, record = rank.end()
    assert (status, record["told"], record["error"], rank.stderr) == (-signal.SIGKILL, True, None, "")


@pytest.mark.parametrize("status", [0, 1])
def test_python_exception_is_in_the_exit_note(shim: Path, tmp_path: Path, status: int) -> None:
    raised = "raised ValueError: a 'b' (x.py line 3)"
    rank = PulseRank(shim, tmp_path, f"os.pwrite(fd, {raised!r}.encode(), 24); sys.exit({status})")
    ended, record = rank.end()
    assert (ended, record["exit"], record.get("raised")) == (-signal.SIGKILL, status, raised if status else None)


def test_exception_of_a_trainer_is_in_the_exit_note(shim: Path, tmp_path: Path) -> None:
    raised = "raised ValueError: x (train.py line 3)"
    rank = PulseRank(shim, tmp_path, f"os.pwrite(fd, {raised!r}.encode(), 24); sys.exit(1)", rank=1)
    _, record = rank.end()
    assert (record["role"], record["exit"], record["raised"]) == ("trainer", 1, raised)


def test_exception_line_in_the_log_is_not_recorded_as_an_exception(shim: Path, tmp_path: Path) -> None:
    says = "print('mpidata: Solver rank 3, simulation 1, raised ValueError: a (x.py line 3)'); sys.exit(1)"
    _, record = PulseRank(shim, tmp_path, says).end()
    assert record["exit"] == 1 and "raised" not in record and record["error"] is None


def test_failed_spawned_rank_is_recorded_with_its_group(shim: Path, tmp_path: Path) -> None:
    says = "print(os.environ['MPIDATA_RUN'], flush=True); sys.exit(3)"
    rank = PulseRank(shim, tmp_path, says, JOINED, rank=1, words="--group 7", start="spawn", world=3)
    status, record = rank.end()
    assert status == -signal.SIGKILL and record.pop("pid")
    assert "exit status 3: solver 1 of group 7, which was spawned." in rank.stderr
    assert record == {
        **{"rank": None, "role": "solver", "group": 7, "rank_in_group": 1, "exit": 3, "signal": None},
        **{"joined": True, "silent_s": None, "told": False, "error": None},
    }
    assert os.listdir(rank.run / "exits") == ["group-0007-1"]
    assert (rank.run / "logs" / "group-0007-solver-1.log").read_text() == f"{rank.run}\n"


def test_spawned_rank_outside_the_plan_leaves_an_exit_note(shim: Path, tmp_path: Path) -> None:
    rank = PulseRank(shim, tmp_path, "", rank=2, words="--group 7", start="spawn", world=3)
    status, record = rank.end()
    assert status == 1 and record["joined"] is False
    assert record["error"].startswith("The spawned group 7 has 2 ranks, but was planned with 2. ") is True


@pytest.mark.parametrize(
    ("words", "lifetime", "said"),
    [
        ("--group 7 alpha=0.5 b=x=y", "simulation", ["--a=0.5", "{{0.5}}x=y}", "plain"]),
        ("--group 7 alpha=0.5 b=x=y", "pool", ["--a={alpha}", "{{{{{alpha}}}}}{b}}}", "plain"]),
    ],
)
def test_placeholders_are_replaced_only_with_lifetime_simulation(
    shim: Path, tmp_path: Path, words: str, lifetime: str, said: list[str]
) -> None:
    script = f'{JOIN_AND_LEAVE}; printf "%s\\n" "$@"'
    arguments = ["sh", "-c", script.replace("{", "{{").replace("}", "}}"), "sh"]
    if lifetime == "pool":
        arguments[2] = script
    arguments += ["--a={alpha}", "{{{{{alpha}}}}}{b}}}", "plain"]
    run = make_plan(tmp_path, {"solver": arguments}, start="spawn", world=3, lifetime=lifetime).run
    variables = clean_environment(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2")
    done = subprocess.run([str(shim), str(run), *words.split()], env=variables, timeout=20)
    assert done.returncode == 0
    assert (run / "logs" / "group-0007-solver-0.log").read_text().splitlines() == said


@pytest.mark.parametrize("lifetime", ["simulation", "pool"])
def test_environment_of_a_solver_names_its_group_and_simulation(shim: Path, tmp_path: Path, lifetime: str) -> None:
    told = "$MPIDATA_GROUP,$MPIDATA_SIMULATION,$MPIDATA_PARAM_ALPHA$MPIDATA_PARAM_TRY"
    solver = ["sh", "-c", f'{JOIN_AND_LEAVE}; echo "{told}"']
    if lifetime == "simulation":
        solver[2] = solver[2].replace("{", "{{").replace("}", "}}")
    run = make_plan(tmp_path, {"solver": solver}, start="spawn", world=3, lifetime=lifetime).run
    variables = clean_environment(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2")
    words = ["--group", "7", *(["alpha=0.5", "simulation=5", "try=1"] if lifetime == "simulation" else [])]
    subprocess.run([str(shim), str(run), *words], env=variables, timeout=20, check=True)
    said = (run / "logs" / "group-0007-solver-0.log").read_text().splitlines()
    assert said == ["7,5,0.5" if lifetime == "simulation" else "7,,"]


def test_formats_in_placeholders_are_applied(shim: Path, tmp_path: Path) -> None:
    script = f'{JOIN_AND_LEAVE}; printf "%s\\n" "$@"'.replace("{", "{{").replace("}", "}}")
    arguments = ["sh", "-c", script, "sh", "{n:04d}|{n:-3d}|{alpha:.3e}|{alpha:+g}", "{n}"]
    run = make_plan(tmp_path, {"solver": arguments}, start="spawn", world=3, lifetime="simulation").run
    variables = clean_environment(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2")
    subprocess.run([str(shim), str(run), "--group", "7", "n=7", "alpha=0.5"], env=variables, timeout=20, check=True)
    assert (run / "logs" / "group-0007-solver-0.log").read_text().splitlines() == ["0007|7  |5.000e-01|+0.5", "7"]


def test_placeholder_without_a_value_is_an_error(shim: Path, tmp_path: Path) -> None:
    program = ["sh", "-c", pulse(7), "{alpha}"]
    program[2] = program[2].replace("{", "{{").replace("}", "}}")
    run = make_plan(tmp_path, {"solver": program}, start="spawn", world=3, lifetime="simulation").run
    variables = clean_environment(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2")
    done = subprocess.run([str(shim), str(run), "--group", "7"], env=variables, timeout=20, capture_output=True)
    assert done.returncode == 1 and b"There is no value for '{alpha}'" in done.stderr
    assert "no value for '{alpha}'" in json.loads((run / "exits" / "group-0007-0").read_text())["error"]


@pytest.mark.parametrize("flags", [0, JOINED])
def test_sigusr1_asks_the_job_to_stop(shim: Path, tmp_path: Path, flags: int) -> None:
    listen = "signal.signal(signal.SIGUSR1, lambda *_: (tell(7), print('heard', flush=True), sys.exit(0)))"
    wait = "run = os.environ['MPIDATA_RUN']; open(run + '/up', 'w')\n"
    wait += "while not os.path.exists(run + '/stop'): work(0.01)\n"
    wait += f"work({20 if flags else 0.5}); tell(7)"
    rank = PulseRank(shim, tmp_path, f"{listen}; {wait}", flags, rank=0)
    wait_until((rank.run / "up").exists)
    rank.process.send_signal(signal.SIGUSR1)
    assert rank.end() == (0, {})
    assert (rank.run / "stop").read_text() == "SIGUSR1\n"
    assert (rank.run / "logs" / "rank-0000-scheduler.log").read_text() == ("heard\n" if flags else "")


@pytest.mark.parametrize("tolerance", ["ulfm", "none"])
def test_program_that_ends_without_mpi_finalize_is_reported(shim: Path, tmp_path: Path, tolerance: str) -> None:
    rank = PulseRank(shim, tmp_path, "beat()", JOINED | LEFT, fault_tolerance=tolerance)
    process_status = rank.process.wait(timeout=20)
    said = "rank 3 (a solver of group 0) ended without MPI_Finalize, so all others wait in theirs."
    assert said in rank.process.communicate()[1]
    assert said in (rank.run / "logs" / "rank-0003-solver-0-0.log").read_text()
    (left,) = (rank.run / "exits").iterdir()
    if tolerance == "ulfm":  # the program has done all its work, and the others learn that MPI may wait for it
        assert (process_status, left.name) == (0, "without-finalize-rank-0003")
    else:
        assert process_status == -signal.SIGKILL and said in json.loads(left.read_text())["error"]


@pytest.mark.parametrize(("rank", "told"), [(0, False), (3, True)])
def test_killed_scheduler_is_recorded_as_the_cause_of_the_end(
    shim: Path, tmp_path: Path, rank: int, told: bool
) -> None:
    dies = "open(os.environ['MPIDATA_RUN'] + '/over', 'w'); os.kill(os.getpid(), signal.SIGKILL)"
    _, record = PulseRank(shim, tmp_path, dies, rank=rank).end()
    assert (record["signal"], record["told"]) == (9, told)
