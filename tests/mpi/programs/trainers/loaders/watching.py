"""How trainers find and wait for loaders that take part: their programs, by number, and what the run says of them."""

import json
import time

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
    wanted, events = {"event": event, "loader": loader}, trainer.plan.run / "events.jsonl"
    lines = []
    while not any(wanted.items() <= json.loads(line).items() for line in lines):
        time.sleep(0.02)
        # Another process writes it: it may not be there yet, and its last line may not be whole.
        lines = [line for line in events.read_text().splitlines(True) if line.endswith("\n")] if events.exists() else []
