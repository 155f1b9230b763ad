"""The one-screen summary at the end of `mpidata run`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from mpidata.checkpoint import numbers
from mpidata.errors import MpidataError
from mpidata.launch.watching.outcome import Outcome
from mpidata.run.exits import tail
from mpidata.run.folder import RunFolder
from mpidata.run.logged_losses import read_first_loss

__all__ = ["show_outcome"]

_SHOWN = 5
_COLOURS = {"complete": "bold green", "stopped": "bold yellow", "failed": "bold red"}


def show_outcome(outcome: Outcome, console: Console, errors: Console) -> None:
    """Show how a run ended.

    Parameters
    ----------
    outcome : Outcome
        As `settle` returns it.
    console, errors : rich.console.Console
        For the summary, and for errors.
    """
    summary = outcome.summary
    status = summary["status"]
    rows = _rows(summary)
    if outcome.removed:
        rows = [row for row in rows if row[0] != "run folder"]
    elif status == "failed" or (status == "stopped" and outcome.exit_status):
        rows.append(("checkpoint", _checkpoint(Path(summary["run"]))))
    width = max(len(key) for key, _ in rows)
    console.print()
    console.print(Text(f"{summary['name']}: {status}", _COLOURS.get(status, "bold")), end="")
    console.print(Text(f" ({summary['reason']})" if summary.get("reason") else ""), soft_wrap=True)
    for key, text in rows:  # never folded: a path must stay in one piece
        console.print(Text(f"  {key:<{width}}  {text}"), soft_wrap=True)
    _show_set_aside(summary.get("set_aside") or [], summary["run"], console)
    if status != "failed":
        return
    errors.print()
    if outcome.log is not None and (lines := tail(outcome.log, 15)):
        errors.print(Text(f"Last lines of {outcome.log}:"), soft_wrap=True)
        errors.print(Text.from_ansi("\n".join(f"  {line}" for line in lines)), soft_wrap=True)
    sentence = summary.get("error") or f"The run failed. Its events are in {summary['run']}/events.jsonl."
    errors.print(Text(sentence, "bold red"), soft_wrap=True)


def _rows(summary: dict[str, Any]) -> list[tuple[str, str]]:
    simulations, samples = summary["simulations"], summary["samples"]
    failed = f", {simulations['failed']} failed" if simulations["failed"] else ""
    failed += f", {n} cancelled" if (n := simulations.get("cancelled")) else ""
    seconds = summary["seconds"]
    rate = f", {samples['received'] / seconds:.0f}/s" if seconds > 0 else ""
    handed = f", {n} of trainers that drew nothing" if (n := samples.get("handed_over")) else ""
    rows = [
        ("simulations", f"{simulations['complete']} of {simulations['requested']} complete{failed}"),
        ("samples", f"{samples['received']} for training{rate}{handed}, {samples['validation']} for validation"),
        ("batches", (" + ".join(map(str, summary["batches"]["per_trainer"])) or "0") + _excess(summary["batches"])),
        ("data", f"{summary['bytes'] / 1e6:.1f} MB in {seconds:.1f} s"),
    ]
    if simulations.get("short"):
        rows.append(("too short", f"{simulations['short']} simulations, for a window of samples.window steps"))
    if summary["status"] == "complete" and simulations["complete"] and (none := _without_samples(summary)):
        rows.append(("no samples", f"for {none}: no batch, as all trainers draw the same number. Run more simulations"))
    if not simulations["requested"]:
        rows = [("time", f"{seconds:.1f} s")]
    if loaders := summary.get("loaders"):
        rows.append(("loaders", f"{loaders['joined']} joined, {loaders['lost']} lost"))
    if loaded := summary.get("loaded"):
        again = f", {loaded['parts_read_again']} parts read again" if loaded["parts_read_again"] else ""
        batches = " + ".join(map(str, loaded["batches"]))
        rows.append(("loaded", f"{loaded['samples']} samples, {batches} batches, up to epoch {loaded['epoch']}{again}"))
        waits = ", ".join(f"{wait:.1f} s" for wait in loaded["wait_s"])
        rows.append(("waited", f"{waits}; for the first batch {loaded['first_batch_s']:.1f} s"))
    retries, lost = summary.get("retries", []), summary.get("lost_groups", 0)
    if retries or lost:
        rows.insert(1, ("retries", f"{len(retries)}, {lost} group{'s' if lost != 1 else ''} lost"))
    if lost and (first := read_first_loss(RunFolder(Path(summary["run"])).events)) is not None:
        rows.insert(2, ("first loss", f"group {first.get('group')}: one of its solvers {first.get('how')}"))
    if untrained := (loaded or {}).get("untrained"):
        rows.append(("not trained on", f"{untrained} rows, which a trainer left in the middle of an epoch"))
    if inference := summary.get("inference"):
        rows.append(("inference ranks", f"{inference['joined']} joined, {inference['lost']} lost"))
    if learner := summary.get("learner"):
        rows.append(("learner", f"{learner['joined']} joined, {learner['lost']} lost"))
    if replicas := summary.get("replicas"):
        rows.append(("replicas", f"{replicas['count']} of {replicas['ranks']} ranks"))
    if servers := summary.get("servers"):
        rows.append(("servers", f"{servers['ranks']}, {servers['pushes']} pushes"))
    if changes := _changes_of_trainers(summary):
        rows.append(("trainers", changes))
    for name, value in summary["training"].items():
        rows.append((name, f"{_number(value.get('first'))} -> {_number(value.get('last'))}"))
    return [*rows, ("run folder", summary["run"])]


def _changes_of_trainers(summary: dict[str, Any]) -> str:
    dead, joined, retired = (_each(summary.get(f"{how}_trainers") or []) for how in ("lost", "joined", "retired"))
    told = []
    if dead:
        others = ", and the others went on" if summary["status"] != "failed" else ""
        told.append(f"trainer{'s' if len(dead) > 1 else ''} {', '.join(dead)} lost{others}")
    if joined:
        told.append(f"spare{'s' if len(joined) > 1 else ''} {', '.join(joined)} took a place")
    if retired:
        told.append(f"{', '.join(retired)} left by mpidata scale")
    if again := summary.get("run_again"):
        told.append(f"{again} simulations ran again")
    return "; ".join(told)


def _each(numbers: list[int]) -> list[str]:
    """Return each number once as text: a resumed run may have lost a trainer more than once."""
    return [
        f"{one} ({times} times)" if (times := numbers.count(one)) > 1 else str(one) for one in dict.fromkeys(numbers)
    ]


def _without_samples(summary: dict[str, Any]) -> str:
    """Name the trainers that have received nothing, if this is why no trainer has drawn anything."""
    received, batches = summary["samples"].get("per_trainer") or [], summary["batches"].get("per_trainer") or []
    none = [str(trainer) for trainer, samples in enumerate(received) if not samples]
    return f"trainer {' and '.join(none)}" if none and batches and not any(batches) else ""


def _excess(batches: dict[str, Any]) -> str:
    return f", {batches['excess']} more than buffer.repeats allows" if batches.get("excess") else ""


def _show_set_aside(entries: list[dict[str, Any]], run: str, console: Console) -> None:
    """List the simulations that were set aside, with the causes and the last output of their solvers."""
    if not entries:
        return
    console.print(Text("\nSet aside:", "bold yellow"), soft_wrap=True)
    for entry in entries[:_SHOWN]:
        values = ", ".join(
            f"{name} = {value if isinstance(value, str) else f'{value:.6g}'}"
            for name, value in entry["parameters"].items()
        )
        tries = "1 try" if entry["tries"] == 1 else f"{entry['tries']} tries"
        who = f"simulation {entry['simulation']} ({values}), {tries}"
        console.print(Text(f"  {who}: its solver {entry['how']}"), soft_wrap=True)
        console.print(Text.from_ansi("\n".join(f"    {line}" for line in entry["output"])), soft_wrap=True)
    if len(entries) > _SHOWN:
        console.print(Text(f"  and {len(entries) - _SHOWN} more: see {run}/summary.json"), soft_wrap=True)


def _checkpoint(run: Path) -> str:
    """Return the checkpoint from which the run could be resumed, and the command."""
    try:
        written = numbers(RunFolder(run).checkpoints)
    except MpidataError as error:
        return f"unknown. {error}"
    command = f"mpidata run --resume {shlex.quote(str(run))}"
    return f"{written[-1]}; resume with {command}" if written else f"none; {command} starts over"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.4g}"
