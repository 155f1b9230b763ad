"""A logger that writes what it receives to `curves` in the run folder, and raises at the end of each `write`."""

import json


class Tracker:
    def open(self, run, job):
        self.file = open(run / "curves", "w")
        self.trainers = job["trainers"]["ranks"]

    def write(self, time, batch, values):
        print(json.dumps([batch, values]), file=self.file)
        raise ValueError("no network")

    def close(self, status):
        print(json.dumps([status, self.trainers]), file=self.file, flush=True)
