"""The bottleneck of a job, in words, and the numbers of groups and trainers that would be balanced."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from mpidata.reporting.advice.measurements import LongSimulation, Measured
from mpidata.sizes import size_text

__all__ = ["CAUSES", "Advice", "advise"]

CAUSES = {
    "solvers": "The solvers held the job back",
    "training": "Training held the job back",
    "buffer": "The buffer held the job back",
    "loaders": "The loaders held the job back",
    "disk": "The disk held the job back",
    "slow group": "One slow group held the job back",
    "long simulation": "One long simulation held the job back",
    "slow trainer": "One slow trainer held the job back",
    "too many groups": "There are too many groups",
    "short simulations": "Simulations are short",
    "start-up": "Start-up held the job back",
    "balanced": "The job is balanced",
    "unknown": "The bottleneck of the job is unknown",
}

_WAITS = 0.15  # share of time from which waiting is reported
_SLOW = 2.0  # times as long as the others
_FASTER = 1.3  # times as many samples per second
_MANY = 8  # more groups than needed, if also at least four times as many
_FAR = 8  # times as many trainers as the job has: too many to recommend
_MANY_EACH = 10  # simulations per group, with which groups do not wait for the last ones to end


@dataclass(frozen=True)
class Advice:
    """The bottleneck of a job, and recommendations.

    Attributes
    ----------
    cause : str
        One of CAUSES.
    sentences : list of str
        The first names the cause; the others give the figures that show it, and what to do.
    groups, trainers, capacity : int, str or None
        Recommended values.
    samples_s : float or None
        Expected samples per second with these.
    """

    cause: str
    sentences: list[str]
    groups: int | None = None
    trainers: int | None = None
    capacity: int | str | None = None
    samples_s: float | None = None


def advise(measured: Measured | None, cores: int | None = None) -> Advice:
    """Return the bottleneck of a job, and what would be balanced, on `cores` cores if given."""
    if measured is None or not measured.trainers or measured.groups < 1 or measured.samples_s <= 0:
        return _say("unknown", ["Too little was measured: the run was too short, or no samples arrived."])
    advice = _judge(measured)
    if cores is None or advice.cause == "unknown":
        return advice
    groups, trainers, samples_s = _on_cores(measured, cores)
    if not groups:
        each = 1 + measured.ranks_per_replica
        need = 1 + each + measured.ranks_per_group
        who = "a trainer" if each == 2 else "a replica"
        sentence = (
            f"{cores} cores are too few: one for the scheduler, {each} for {who}, and those for a group make {need}."
        )
        return _say(advice.cause, [*advice.sentences[1:], sentence])
    cores_each = f"({1 + measured.ranks_per_replica} cores each)"
    sentence = f"On {cores} cores, {_count(groups, 'group')} and {_trainers(measured, trainers)} {cores_each} would be "
    sentence += "best: "
    sentence += f"about {_number(samples_s)} samples a second instead of {_number(measured.samples_s)}."
    return _say(
        advice.cause,
        [*advice.sentences[1:], sentence],
        groups,
        trainers * measured.ranks_per_replica,
        advice.capacity,
        samples_s,
    )


def _judge(m: Measured) -> Advice:
    if m.run_s > 0 and m.startup_s > 0.5 * m.run_s or m.starting > 0.5:
        return _startup(m)
    if m.slowed >= _WAITS or m.recorded_after_s > 0.3 * m.run_s:
        share = f"Recording made the trainers and groups wait for {_percent(m.slowed)} of the time"
        share += f", and continued for {m.recorded_after_s:.1f} s of {m.run_s:.1f} s after the last batch."
        fix = "Record to a faster disk, less (record.every, smaller dtypes), or with `record: {when_slow: skip}`."
        return _say("disk", [share, fix])
    waits, room = m.waited >= _WAITS, m.room >= _WAITS
    slow_trainer, slow_group = _slow_trainer(m), _slow_group(m)
    if slow_trainer is not None and room:
        return _slow_trainer_says(m, slow_trainer)
    if waits and room:
        return _buffer(m)
    if room:
        return _training(m)
    if slow_group is not None and (waits or m.simulation >= _WAITS):
        return _slow_group_says(m, slow_group)
    if m.simulation >= 0.3 and m.simulations >= _MANY_EACH * m.groups:
        return _short(m)
    if m.simulation >= 0.3:
        enough = max(1, math.ceil(m.groups * (1 - m.simulation)))
        idle = f"There were fewer simulations than groups: {_count(enough, 'group')} would be enough."
        return _say("too many groups", [_shares(m), idle], groups=enough)
    if m.long is not None and waits:
        return _long_says(m, m.long)
    if waits:
        return _solvers(m)
    if m.groups * m.group_most_s >= _FASTER * len(m.trainers) * m.trainer_most_s:
        return _training(m)
    return _say("balanced", [_shares(m), _trained(m), "Neither waits for the other for long."])


def _startup(m: Measured) -> Advice:
    figures = [f"{m.startup_s:.1f} s of {m.run_s:.1f} s had passed when the first samples arrived."]
    if m.starting >= _WAITS:
        figures.append(f"Groups started simulations for {_percent(m.starting)} of their time, before a first step.")
    fix = "Run more simulations in a job, let a group run many (`lifetime: pool`), or load less at the start."
    return _say("start-up", [*figures, fix])


def _short(m: Measured) -> Advice:
    rate = f"The scheduler assigned {_number(m.simulations / m.run_s)} simulations a second, and groups wait for that"
    fix = f"{rate}, or for their parameters. Make simulations longer: combine several short ones, or use more steps."
    return _say("short simulations", [_shares(m), fix])


def _solvers(m: Measured) -> Advice:
    most = m.trainer_most_s * len(m.trainers)
    groups = max(m.groups + 1, round(most / m.group_most_s))
    return _more(m, "solvers", groups, len(m.trainers), f"{_count(groups, 'group')} would keep up with training")


def _training(m: Measured) -> Advice:
    most, solvers = m.trainer_most_s * len(m.trainers), m.group_most_s * m.groups
    enough = max(1, math.ceil(most / m.group_most_s - 0.05))
    if m.groups - enough >= _MANY and m.groups >= 4 * enough:
        saved = f"{_count(enough, 'group')} would be enough, with the same {_number(most)} samples a second"
        return _more(m, "too many groups", enough, len(m.trainers), saved)
    trainers = max(len(m.trainers) + 1, round(solvers / m.trainer_most_s))
    if trainers > _FAR * len(m.trainers):
        return _far_more(m, solvers / most, enough)
    advice = _more(m, "training", m.groups, trainers, f"{_trainers(m, trainers)} would keep up with the solvers")
    fewer = f"Or {_count(enough, 'group')} would suffice for {_trainers(m, len(m.trainers))}, at the same throughput."
    return _say(
        "training",
        [*advice.sentences[1:], *([fewer] if enough < m.groups else [])],
        None,
        advice.trainers,
        None,
        advice.samples_s,
    )


def _far_more(m: Measured, times: float, enough: int) -> Advice:
    """Advise on solvers that are much faster than the training."""
    far = f"The groups could send {_number(times)} times as many samples as training takes."
    groups = f" {_count(enough, 'group')} would be enough for it." if enough < m.groups else ""
    fix = "Make a step of the training faster (larger batches, a GPU), use each sample less often (buffer.repeats), or "
    fix += "add trainers."
    return _say("training", [_shares(m), _trained(m), far + groups, fix])


def _more(m: Measured, cause: str, groups: int, trainers: int, what: str) -> Advice:
    samples_s = min(groups * m.group_most_s, trainers * m.trainer_most_s)
    expected = f"{what}: expect about {_number(samples_s)} samples a second instead of {_number(m.samples_s)}."
    return _say(cause, [_shares(m), _trained(m), expected], groups, trainers * m.ranks_per_replica, None, samples_s)


def _buffer(m: Measured) -> Advice:
    samples_s = min(m.groups * m.group_most_s, len(m.trainers) * m.trainer_most_s)
    capacity: int | str = max(4 * m.capacity, math.ceil(16 * m.batch), math.ceil(8 * m.groups / len(m.trainers)))
    size = f"{m.capacity} samples, {m.capacity / m.batch:.1f} batches,"
    if m.capacity_bytes:
        capacity, size = size_text(4 * m.capacity_bytes), size_text(m.capacity_bytes)
    why = f"Both sides waited in turn: the buffer of {size} does not even out samples that arrive in bursts."
    expected = f"With `buffer.capacity: {capacity}` expect about {_number(samples_s)} samples a second."
    return _say("buffer", [_shares(m), _trained(m), why, expected], None, None, capacity, samples_s)


def _slow_trainer(m: Measured) -> int | None:
    """Find the trainer that takes much longer for a sample than the others."""
    if len(m.trainers) < 2:
        return None
    most = [trainer.most_s for trainer in m.trainers]
    slow = most.index(min(most))
    others = statistics.median(value for i, value in enumerate(most) if i != slow)
    return slow if others >= 1.5 * most[slow] else None


def _slow_trainer_says(m: Measured, slow: int) -> Advice:
    others = statistics.median(trainer.most_s for i, trainer in enumerate(m.trainers) if i != slow)
    of = m.trainers[slow]
    figures = f"Trainer {of.number} could take {_number(of.most_s)} samples a second, the others {_number(others)}; "
    waits = statistics.fmean(trainer.waited for i, trainer in enumerate(m.trainers) if i != slow)
    figures += f"it waited for {_percent(of.waited)} of the time, the others for {_percent(waits)}."
    why = "All trainers get the same number of samples, so the groups waited for room in its buffer."
    samples_s = min(m.groups * m.group_most_s, len(m.trainers) * others)
    fix = "Find out what slows that trainer: its host, its GPU, or extra work of its script. At the others' speed, "
    fix += f"expect {_number(samples_s)} samples a second instead of {_number(m.samples_s)}."
    return _say("slow trainer", [figures, why, fix], samples_s=samples_s)


def _slow_group(m: Measured) -> int | None:
    """Find the group that takes much longer for a step than the others."""
    if len(m.step_s) < 3:
        return None
    slow = max(m.step_s, key=lambda group: m.step_s[group])
    others = sorted(value for group, value in m.step_s.items() if group != slow)
    return (
        slow
        if m.step_s[slow] >= _SLOW * max(statistics.median(others), 1e-9) and m.step_s[slow] >= 1.3 * others[-1]
        else None
    )


def _slow_group_says(m: Measured, slow: int) -> Advice:
    others = statistics.median(value for group, value in m.step_s.items() if group != slow)
    figures = f"A step took {_seconds(m.step_s[slow])} on group {slow}, and {_seconds(others)} on the others."
    alike = sum(1 / value for value in m.step_s.values() if value > 0)
    samples_s = min(m.samples_s * len(m.step_s) / others / alike, len(m.trainers) * m.trainer_most_s)
    fix = "Find out what slows that group: its host, or its simulations, whose parameters are in parameters.csv. "
    fix += f"At the others' speed, expect {_number(samples_s)} samples a second instead of {_number(m.samples_s)}."
    return _say("slow group", [figures, _shares(m), _trained(m), fix], samples_s=samples_s)


def _long_says(m: Measured, long: LongSimulation) -> Advice:
    figures = f"Simulation {long.simulation} took {_seconds(long.seconds)}; the median is {_seconds(long.others_s)}. "
    figures += (
        f"It was still running when others were done: groups had nothing to do for {_percent(long.idle)} of their time."
    )
    fix = "Start long simulations first, shorten them, or give groups more ranks; see its row in parameters.csv."
    return _say("long simulation", [figures, _shares(m), _trained(m), fix])


def _on_cores(m: Measured, cores: int) -> tuple[int, int, float]:
    """Find the smallest numbers of groups and trainers that give the most samples per second on these cores."""
    best = (0, 0, 0.0)
    for trainers in range(1, max(1, cores // 2) + 1):
        groups = (cores - 1 - (1 + m.ranks_per_replica) * trainers) // m.ranks_per_group
        if groups < 1:
            break
        most = trainers * m.trainer_most_s
        groups = min(groups, max(1, math.ceil(most / m.group_most_s - 0.05)))
        samples_s = min(groups * m.group_most_s, most)
        if samples_s > 1.02 * best[2]:
            best = groups, trainers, samples_s
    return best


def _say(
    cause: str,
    sentences: list[str],
    groups: int | None = None,
    trainers: int | None = None,
    capacity: int | str | None = None,
    samples_s: float | None = None,
) -> Advice:
    return Advice(cause, [f"{CAUSES[cause]}.", *sentences], groups, trainers, capacity, samples_s)


def _shares(m: Measured) -> str:
    shares = {
        "computed": m.computing,
        "waited for room": m.room,
        "waited for a simulation": m.simulation,
        "started": m.starting,
    }
    return f"The groups {', '.join(f'{what} for {_percent(share)}' for what, share in shares.items())} of their time."


def _trained(m: Measured) -> str:
    if m.waited < 0.005:
        return "The training loops never waited for data."
    return f"The training loops waited for data for {_percent(m.waited)} of their time."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{1e3 * value:.3g} ms"


def _trainers(m: Measured, number: int) -> str:
    """Name a number of trainers, or of replicas with the number of ranks to request."""
    each = m.ranks_per_replica
    replicas = f"{_count(number, 'replica')} of {each} ranks ('trainers.ranks: {number * each}')"
    return _count(number, "trainer") if each == 1 else replicas


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"
