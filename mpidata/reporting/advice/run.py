"""The bottleneck of the job of a run folder, with solvers or only with loaders."""

from __future__ import annotations

import statistics

from mpidata.reporting.advice.advice import Advice, advise
from mpidata.reporting.advice.measurements import measure
from mpidata.reporting.reading.history import read_events
from mpidata.reporting.reading.lines import middle_of, samples_of, waited_of
from mpidata.reporting.reading.run_snapshot import RunSnapshot

__all__ = ["advise_run"]

_WAITS = 0.15  # share of time from which waiting is reported
_CHANGES = ("trainer_lost", "trainer_joined", "trainer_retired")


def advise_run(look: RunSnapshot, cores: int | None = None) -> Advice:
    """Return the bottleneck of a run's job, and what would be balanced, on `cores` cores if given."""
    if any(event.get("event") in _CHANGES for event in read_events(look.run.events)):
        told = "Trainers died, joined or left, so its times do not show those of a job with a fixed number of them."
        return Advice("unknown", ["The bottleneck of the job is unknown.", told])
    return advise(measure(look), cores) if look.job.get("solvers") else _of_loaders(look)


def _of_loaders(look: RunSnapshot) -> Advice:
    inside = middle_of(look.metrics)
    if inside is None:
        return Advice("unknown", ["The bottleneck of the job is unknown.", "Too little was loaded, or too quickly."])
    first, last = inside
    seconds = last["seconds"] - first["seconds"]
    waited = statistics.fmean(b - a for a, b in zip(waited_of(first), waited_of(last), strict=True)) / seconds
    told = f"The training loops waited for data for {100 * min(1.0, max(0.0, waited)):.0f} % of their time, "
    samples_s = (samples_of(last) - samples_of(first)) / seconds
    told += f"at {samples_s:.{0 if samples_s >= 100 else 1}f} samples a second."
    if waited < _WAITS:
        return Advice("balanced", ["The loaders kept up with training.", told])
    loaders = look.job.get("loaders")
    had = loaders.get("ranks", "?") if isinstance(loaders, dict) else "?"
    fix = f"Try more loaders (loaders.ranks; it had {had}), larger batches, or a faster disk."
    return Advice("loaders", ["The loaders held the job back.", told, fix])
