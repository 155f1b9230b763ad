"""The figures of a job in one line."""

from __future__ import annotations

from typing import Any

__all__ = ["figures_line", "fills", "loaded"]


def figures_line(figures: dict[str, Any]) -> str:
    """Return the contents of progress.json as one line."""
    simulations, samples = figures["simulations"], figures["samples"]
    stream = [
        f"simulations {simulations['complete']}/{simulations['requested']}",
        f"samples {samples['received']} ({samples['per_second']:.0f}/s)",
        "fill " + " ".join(f"{100 * fill:.0f}%" if state == "trains" else state for fill, state in fills(figures)),
        "batches " + " ".join(map(str, figures["batches"])),
    ]
    for state in ("cancelled", "failed"):
        if simulations.get(state):
            stream.insert(1, f"{state} {simulations[state]}")
    parts = [f"{figures['seconds']:.0f} s", *(stream if simulations["requested"] else []), *loaded(figures)]
    return ", ".join(parts + [f"{name} {_number(value)}" for name, value in figures["report"].items()])


def fills(figures: dict[str, Any]) -> list[tuple[float, str]]:
    """Return for each trainer the fill of its buffer and its state: `trains`, `dead`, `left` or `spare`."""
    fill = figures.get("fill") or []
    return list(zip(fill, figures.get("trainers") or ["trains"] * len(fill), strict=True))


def loaded(figures: dict[str, Any]) -> list[str]:
    """Return the progress of the datasets on loaders, if there are any."""
    found, parts = figures.get("loaded", {}), []
    if reading := found.get("reading"):
        doing = "counting" if reading["counted"] < reading["parts"] and not reading["read"] else "reading"
        done = reading["counted" if doing == "counting" else "read"]
        parts.append(f"{doing} parts {done}/{reading['parts']}")
    if "epoch" in found:
        parts += [
            f"epoch {found['epoch']}",
            f"loaded {found['samples']} ({found['per_second']:.0f}/s)",
            "batches " + " ".join(map(str, found["batches"])),
            "waited " + " ".join(f"{seconds:.1f}" for seconds in found["wait_s"]) + " s",
        ]
    return parts


def _number(value: float | None) -> str:
    return "nan" if value is None else f"{value:.4g}"
