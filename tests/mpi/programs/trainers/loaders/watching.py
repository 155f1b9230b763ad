"""Helpers for trainers that watch loaders: their process ids, by number, and their events in the run folder."""

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
        # Another process writes the file: it may be missing, or its last line incomplete.
        lines = [line for line in events.read_text().splitlines(True) if line.endswith("\n")] if events.exists() else []
