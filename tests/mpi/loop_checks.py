"""Checks of a job of the loop campaign, whoever has died."""

import json
import re
from collections import Counter
from pathlib import Path

from jobs import JobFolder, Result, read_rows
from loop_draw import Draw
from stream_job import trained

from mpidata import RecordedDataset


def check(one: Draw, folder: Path, result: Result) -> set[int]:
    """Run all checks; returns the simulations that `cancel` has taken."""
    taken = check_cancelled(one, folder, result)
    (check_trained if one.elastic else check_drawn)(one, folder, result)
    check_groups(one, folder, result)
    if one.learner:
        check_learner(one, result)
    if one.record:
        check_record(one, result)
    return taken


def check_cancelled(one: Draw, folder: Path, result: Result) -> set[int]:
    """Cancelled simulations had been taken, never ran again, and are reported alike everywhere; returns those taken."""
    acts = [json.loads(line) for path in folder.glob("acts-*.jsonl") for line in path.read_text().splitlines()]
    taken = {simulation for act in acts for simulation in act.get("taken", [])}
    asked = {simulation for act in acts for simulation in act.get("asks", [])}
    assert taken <= asked & set(range(one.simulations)), (taken, asked)
    assert all(len(set(act["taken"])) == len(act["taken"]) for act in acts if "taken" in act), acts
    assert not any(act.get("again") for act in acts), acts
    summary, cancelled = result.summary, set(result.summary.get("cancelled", []))
    assert cancelled <= (asked if one.elastic else taken), (cancelled - taken, result.logs())
    counts = summary["simulations"]
    total = one.simulations + one.validation
    assert counts["complete"] == total - len(cancelled) and counts["failed"] == 0, counts
    assert counts.get("cancelled", 0) == len(cancelled) and not summary["set_aside"], counts
    rows = read_rows(result.run / "parameters.csv")
    told = {simulation for simulation, row in rows.items() if row.get("state") == "cancelled"}
    assert told == cancelled & rows.keys(), (told, cancelled)  # the sampler may not have drawn all of them
    out: Counter[int] = Counter()
    for event in result.events():
        if event["event"] == "simulation_cancelled":
            out[event["simulation"]] += 1
        elif event["event"] in ("dispatch", "simulation_complete"):
            assert not out[event["simulation"]], f"{event} after it was cancelled"
    assert out == Counter(cancelled), (out, cancelled)
    return taken


def check_drawn(one: Draw, folder: Path, result: Result) -> None:
    """Each sample was drawn once, and all of complete simulations; a reservoir draws some again."""
    parts = [json.loads((folder / f"drawn-{trainer}.json").read_text()) for trainer in range(one.trainers)]
    cancelled = set(result.summary.get("cancelled", []))
    drawn = Counter(key for part in parts for key in set(part))
    assert max(drawn.values(), default=1) == 1, [key for key, n in drawn.items() if n > 1]
    windows = {s: one.steps + s % 3 - (one.window - 1) for s in range(one.simulations)}
    everything = {f"{simulation}/{step}" for simulation, n in windows.items() for step in range(n)}
    assert drawn.keys() <= everything, drawn.keys() - everything
    lacking = {key for key in everything - drawn.keys() if int(key.split("/")[0]) not in cancelled}
    assert not lacking, (sorted(lacking), result.logs())
    assert result.summary["samples"]["received"] == len(drawn), (result.summary["samples"], len(drawn))
    if one.policy != "reservoir":
        for part in parts:  # samples that `tail: repeat` repeats come at the end
            assert len(set(part[: len(set(part))])) == len(set(part)), Counter(part).most_common(5)


def check_trained(one: Draw, folder: Path, result: Result) -> None:
    """All samples of complete simulations were trained on, whoever died; `tail: drop` leaves some, but repeats none."""
    counts = trained({"trainers": one.trainers, "spares": one.trainer_spares, "every": 1, "weighed": False}, result)
    cancelled = set(result.summary.get("cancelled", []))
    complete = {1 + step + 1000 * s for s in range(one.simulations) for step in range(one.steps + s % 3)
                if s not in cancelled}  # fmt: skip
    lacking = sorted(complete - set(counts))
    again = [sample for sample, n in counts.items() if n > 1]
    assert one.tail == "drop" or not lacking, (lacking, result.logs())
    assert one.tail == "repeat" or one.policy == "reservoir" or not again, (again, result.logs())
    assert len(result.summary.get("lost_trainers", [])) <= sum(role == "trainer" for role, _ in one.deaths)


def check_groups(one: Draw, folder: Path, result: Result) -> None:
    """All ranks of a group see the same, and versions never decrease."""
    lives: dict[str, dict[int, list[list[str]]]] = {}
    for path in folder.glob("ran-*"):
        _, life, rank = path.name.split("-")
        lives.setdefault(life, {})[int(rank)] = [line.split() for line in path.read_text().split("\n")[:-1]]
    steps = {e["simulation"]: e["steps"] for e in result.events() if e["event"] == "simulation_cancelled"}
    for life, ranks in lives.items():
        length = min(map(len, ranks.values()))
        assert len({json.dumps(lines[:length]) for lines in ranks.values()}) == 1, (life, ranks)
        versions = [int(line[2]) for lines in ranks.values() for line in lines if line[0] == "version"]
        assert len(ranks) > 1 or versions == sorted(versions), (life, versions)
        for line in ranks[0][:length]:
            if line[0] == "end" and line[3] == "cancelled":
                simulation, made = int(line[1]), int(line[2])
                told = steps.get(simulation, -1)  # what a carrier has not taken yet is dropped
                assert 0 <= told <= made if one.carried else told == made, (simulation, made, told)
            elif line[0] == "end":
                assert int(line[2]) == one.steps + int(line[1]) % 3, line
    assert not re.search("Traceback", result.output), result.output


def check_learner(one: Draw, result: Result) -> None:
    """No simulation was lost or sampled twice: each has the parameters of its number, up to the last one sampled."""
    assert result.run is not None
    rows = read_rows(result.run / "parameters.csv")
    alphas = {simulation: float(row["alpha"]) for simulation, row in rows.items() if simulation < one.simulations}
    assert alphas == {simulation: (simulation + 1) / 1000 for simulation in range(len(alphas))}, alphas
    assert set(range(len(alphas), one.simulations)) <= set(result.summary.get("cancelled", [])), alphas


def check_record(one: Draw, result: Result) -> None:
    """The record has each step of complete simulations once, except what a dead trainer had not written yet."""
    assert result.run is not None
    recorded = RecordedDataset(result.run / "record")
    rows = Counter((int(of["simulation"]), int(of["step"])) for of in map(recorded.__getitem__, range(len(recorded))))
    cancelled, alphas = set(result.summary.get("cancelled", [])), {}
    assert max(rows.values()) == 1, rows.most_common(3)
    wanted = {(s, step) for s in range(one.simulations) for step in range(0, one.steps + s % 3, one.record)}
    assert rows.keys() <= wanted, rows.keys() - wanted
    lacking = {row for row in wanted - rows.keys() if row[0] not in cancelled}
    assert not lacking or result.summary.get("lost_trainers"), (sorted(lacking), result.logs())
    for i in range(len(recorded)):
        sample = recorded[i]
        simulation, step = int(sample["simulation"]), int(sample["step"])
        alpha = alphas.setdefault(simulation, float(sample["parameters"][0]))
        assert (sample["u"] == (sample["u"].new_tensor(alpha + step))).all(), (simulation, step, sample["u"])
        if one.ragged:
            counts = [(simulation + step + rank) % 4 for rank in range(one.ranks)]
            assert sample["p"][:, 1].tolist() == list(range(sum(counts))), (simulation, step, sample["p"])
            assert (sample["p"][:, 0] == 64 * simulation + step).all(), (simulation, step, sample["p"])


def check_lost(one: Draw, died: list[tuple[str, str, int]], result: Result) -> str:
    """Only processes that were ended are lost; returns how many of each kind."""
    ended = Counter({"solver": "group", "carrier": "group"}.get(role, role) for role, _, _ in died)
    if one.carried:
        ended["group"] = sum(role == "carrier" for role, _, _ in died)
    lost = Counter()
    for event in result.events():
        if event["event"].endswith("_lost"):
            lost[event["event"].removesuffix("_lost")] += 1
    assert all(count <= ended[kind] for kind, count in lost.items()), (lost, ended, result.logs())
    return ", ".join(f"{count} {kind} lost" for kind, count in lost.items())


def check_replay(one: Draw, folder: JobFolder, first: Result, timeout: float) -> None:
    """The replay gives the same batches again, although nobody dies now."""
    before = folder.read_notes("drawn", one.trainers)
    again = folder.run(command=[*folder.command()[:2], "--replay", str(first.run)], timeout=timeout)
    assert again.status == 0 and again.run != first.run, again.logs()
    assert folder.read_notes("drawn", one.trainers) == before, again.logs()
    cancelled, lacking = set(again.summary.get("cancelled", [])), set(first.summary.get("cancelled", []))
    lacking -= cancelled
    assert cancelled <= set(first.summary.get("cancelled", [])), again.logs()
    steps = {
        event["simulation"]: event["steps"] for event in first.events() if event["event"] == "simulation_cancelled"
    }
    assert all(steps[simulation] == one.steps + simulation % 3 for simulation in lacking), (lacking, again.logs())
