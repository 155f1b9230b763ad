"""Loaders come, are replaced however they end, and go with the trainers."""

import json

import yaml
from jobs import JobFolder

# What all scripts begin with: the loaders that take part, and their programs by number.
BEGIN = """
import json, os, signal, time
import psutil
from mpidata.trainer.join import join

trainer = join()
first = 1 + trainer.plan.trainers

def number_of(process):
    shim = process.parent().cmdline()
    rank = int(process.environ()["OMPI_COMM_WORLD_RANK"])
    return int(shim[shim.index("--loader") + 1]) if "--loader" in shim else rank - first

def program(loader):
    while True:
        for process in psutil.process_iter():
            try:
                if "mpidata.loader" in process.cmdline() and process.environ()["MPIDATA_RUN"] == str(trainer.plan.run):
                    if number_of(process) == loader:
                        return process.pid
            except (psutil.Error, AttributeError, KeyError):
                pass
        time.sleep(0.02)

def wait_for(event, loader):
    wanted = {"event": event, "loader": loader}
    lines = []
    while not any(wanted.items() <= json.loads(line).items() for line in lines):
        time.sleep(0.02)
        lines = (trainer.plan.run / "events.jsonl").read_text().splitlines()
"""

LOSES_TWO = """
wait_for("loader_joined", 0)
os.kill(program(0), signal.SIGKILL)
wait_for("spare_takes_over", 1)
os.kill(program(1), signal.SIGSTOP)
wait_for("loader_joined", 2)
"""

SPAWNED = """
if trainer.communicator.rank == 0:
    wait_for("loader_joined", 0)
    wait_for("loader_joined", 1)
    os.kill(program(1), signal.SIGKILL)
    wait_for("loader_joined", 2)
"""


LOSES_ONE = """
wait_for("loader_joined", 0)
os.kill(program(0), signal.SIGKILL)
time.sleep(60)
"""


def write(folder: JobFolder, script: str, trainers: int, **loaders: object) -> None:
    folder.write(train=BEGIN + script)
    program = {"ranks": trainers, "program": ["python", "train.py"]}
    (folder.path / "job.yaml").write_text(yaml.safe_dump({"trainers": program, "loaders": loaders}))


def test_a_spare_and_then_a_new_one_take_the_places_of_lost_loaders(folder: JobFolder) -> None:
    write(folder, LOSES_TWO, 1, spares=1, timeout_s=1, start_timeout_s=1)
    result = folder.run(timeout=60)
    assert result.status == 0, result.logs()
    assert result.summary["status"] == "complete" and result.summary["loaders"] == {"joined": 3, "lost": 2}
    assert result.run is not None
    events = [json.loads(line) for line in (result.run / "events.jsonl").read_text().splitlines()]
    lost = [(event["loader"], event["cause"]) for event in events if event["event"] == "loader_lost"]
    assert lost == [(0, "signal"), (1, "silent")]
    assert [event["loader"] for event in events if event["event"] == "loader_left"] == [2]


def test_loaders_that_are_started_later(folder: JobFolder) -> None:
    write(folder, SPAWNED, 2, ranks=2, start="spawn")
    result = folder.run(timeout=60)
    assert result.status == 0, result.logs()
    assert result.summary["status"] == "complete" and result.summary["loaders"] == {"joined": 3, "lost": 1}


def test_without_fault_tolerance_a_death_ends_the_job_with_a_sentence(folder: JobFolder) -> None:
    write(folder, LOSES_ONE, 1, spares=1)
    result = folder.run("--set", "launch.fault_tolerance=false", timeout=60)
    assert result.status == 1 and result.summary["status"] == "failed", result.logs()
    assert result.summary["error"].startswith("Loader 0 (rank 2) was killed by SIGKILL"), result.logs()
