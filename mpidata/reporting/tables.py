"""The tables of a report: settings, results, failures and the machine."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from mpidata.reporting.reading.run_snapshot import RunSnapshot

__all__ = ["asked", "came_out", "lost", "machine"]

Rows = list[tuple[str, str]]
_MOST_ROWS = 30


def asked(look: RunSnapshot) -> Rows:
    """Return the main settings of the job file."""
    job = look.job
    trainers, solvers, loaders = (_part(job, name) for name in ("trainers", "solvers", "loaders"))
    parameters, buffer = _part(job, "parameters"), _part(job, "buffer")
    each = trainers.get("ranks_per_replica", 1)
    replicas = f" in replicas of {each}" if each > 1 else ""
    rows = [("trainers", f"{trainers.get('ranks', 1)}{replicas}: {_program(trainers)}")]
    if solvers:
        ranks = solvers.get("ranks_per_group", 1)
        groups = f"{solvers.get('groups')} of {ranks} rank{'s' * (ranks != 1)}"
        spares = f" and {solvers['spares']} spare" if solvers.get("spares") else ""
        rows.append(("solver groups", f"{groups}{spares}: {_program(solvers)}"))
        count = look.figures.get("simulations", {}).get("requested", parameters.get("count"))
        space = ", ".join(f"{name}: {json.dumps(value)}" for name, value in _part(parameters, "space").items())
        rows.append(("simulations", f"{count}, sampler {parameters.get('sampler')}; {space}"))
        rows.append(("fields", ", ".join(_field(*item) for item in _part(job, "fields").items())))
        rows.append(("buffer", ", ".join(f"{key} {value}" for key, value in buffer.items())))
    if loaders:
        rows.append(("loaders", str(loaders.get("ranks"))))
    return [*rows, ("seed", str(job.get("seed", 0))), ("run folder", str(look.run.path))]


def came_out(look: RunSnapshot) -> Rows:
    """Return the main results of a run."""
    figures = look.figures
    simulations, samples = _part(figures, "simulations"), _part(figures, "samples")
    seconds = figures.get("seconds") or 0.0
    rows: Rows = [("status", look.status + (f" ({figures['reason']})" if figures.get("reason") else ""))]
    if simulations.get("requested"):
        failed = f", {simulations['failed']} set aside" if simulations.get("failed") else ""
        failed += f", {n} cancelled" if (n := simulations.get("cancelled")) else ""
        rows.append(("simulations", f"{simulations.get('complete')} of {simulations['requested']} complete{failed}"))
        rate = f", {samples.get('received', 0) / seconds:.1f} a second" if seconds else ""
        validation = f", {samples['validation']} for validation" if samples.get("validation") else ""
        rows.append(("samples", f"{samples.get('received', 0)} received{rate}{validation}"))
    batches = figures.get("batches")
    drawn = batches.get("per_trainer", []) if isinstance(batches, dict) else batches or []
    rows.append(("batches", " + ".join(map(str, drawn)) or "0"))
    if simulations.get("requested"):
        rows.append(("data", f"{(figures.get('bytes') or 0) / 1e6:.1f} MB in {seconds:.1f} s"))
    else:
        rows.append(("time", f"{seconds:.1f} s"))
    if retries := figures.get("retries"):
        rows.append(("retries", str(len(retries))))
    if groups := figures.get("lost_groups"):
        rows.append(("groups lost", str(groups)))
    if trainers := figures.get("lost_trainers"):
        again = f"; {count} simulations ran again" if (count := figures.get("run_again")) else ""
        rows.append(("trainers lost", f"number {', '.join(map(str, trainers))}{again}"))
    if trainers := figures.get("joined_trainers"):
        rows.append(("trainers joined", ", ".join(map(str, trainers))))
    if trainers := figures.get("retired_trainers"):
        rows.append(("trainers left", ", ".join(map(str, trainers))))
    if loaders := _part(figures, "loaders"):
        rows.append(("loaders", f"{loaders.get('joined')} joined, {loaders.get('lost')} lost"))
    if loaded := _part(figures, "loaded"):
        rows.append(("loaded", f"{loaded.get('samples')} samples, up to epoch {loaded.get('epoch')}"))
    if record := _part(figures, "record"):
        rows.append(("recorded", ", ".join(f"{key} {value}" for key, value in record.items())))
    for name, value in _part(figures, "training").items():
        rows.append((name, f"first {number(value.get('first'))}, last {number(value.get('last'))}"))
    return rows


def lost(look: RunSnapshot) -> list[tuple[str, str, str, str]]:
    """Return what was lost, tried again or set aside: when, what, where, why; only the last ones if there are many."""
    rows = []
    for mark in look.story.marks:
        event = mark.event
        where = ", ".join(
            f"{key} {event[key]}" for key in ("simulation", "group", "loader", "trainer") if event.get(key) is not None
        )
        why = event.get("how") or event.get("reason") or event.get("error") or ""
        if mark.what not in ("checkpoint", "scaled", "trainer joined", "trainer retired"):
            rows.append((f"{mark.time:.1f} s", mark.what, where, str(why)))
    if len(rows) > _MOST_ROWS:
        kinds = ", ".join(f"{count} x {what}" for what, count in Counter(row[1] for row in rows).items())
        return [("", f"total: {kinds}", "", "the last ones:"), *rows[-_MOST_ROWS:]]
    return rows


def machine(look: RunSnapshot) -> Rows:
    """Return the facts about the machine; empty if the run has not written them."""
    facts = look.machine
    if not facts:
        return []
    rows: Rows = [
        (key, str(facts[key])) for key in ("host", "system", "processor", "cores", "mpi", "python") if key in facts
    ]
    if memory := facts.get("memory_bytes"):
        rows.insert(4, ("memory", f"{memory / 2**30:.1f} GiB"))
    if gpus := facts.get("gpus"):
        rows.insert(4, ("GPUs", ", ".join(f"{count} x {name}" for name, count in Counter(gpus).items())))
    return [*rows, ("packages", ", ".join(f"{name} {found}" for name, found in _part(facts, "packages").items()))]


def number(value: object) -> str:
    """Format a number briefly; None was not finite."""
    return f"{value:.4g}" if isinstance(value, (int, float)) else "?"


def _part(whole: dict[str, Any], name: str) -> dict[str, Any]:
    found = whole.get(name)
    return found if isinstance(found, dict) else {}


def _program(section: dict[str, Any]) -> str:
    words = section.get("program") or [section.get("function", "?")]
    return " ".join(map(str, words)) if isinstance(words, list) else str(words)


def _field(name: str, field: Any) -> str:
    if not isinstance(field, dict):
        return str(name)
    return f"{name} {field.get('dtype', '')} {'x'.join(map(str, field.get('shape', [])))}".strip()
