"""The page of the experiment on policies and capacities of the buffer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.runs import Results
from experiments.tables import by_arm, table

__all__ = ["render"]

_REFERENCE = "all kept"


def render(arms: Sequence[str], seeds: Sequence[int], simulations: int, results: Results, output: Path) -> None:
    """Write buffers.md from the available results."""
    found = by_arm(results, arms, seeds)
    if not found:
        return
    last = found[_REFERENCE][0]["marks"][-1]
    parts = [
        "# Buffer policies and capacities: the heat equation",
        "Written by `make experiments`; [the README](../README.md#buffers) describes the experiment. Errors are in "
        "kelvin, on simulations that no arm is trained on, at the end of the training: root mean square over steps "
        f"and points, geometric mean over {len(found[_REFERENCE])} seeds. In brackets is the ratio to a buffer that "
        "keeps all samples, with the 95 % t-interval of its logarithm. Each run has the samples of the same "
        f"{simulations} simulations, in their order of arrival, and {last['steps']:,} training steps.",
        table(found, _REFERENCE, lambda result: result["marks"][-1]),
        "Share of the samples by their number of draws:",
        _drawn(found),
    ]
    (output / "buffers.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _drawn(found: dict[str, list[dict[str, Any]]]) -> str:
    shown = range(9)
    lines = ["| arm | " + " | ".join(map(str, shown)) + " | more |", "| --- |" + " ---: |" * (len(shown) + 1)]
    for arm, results in found.items():
        if not all("draws" in result for result in results):
            continue
        longest = max(len(result["draws"]) for result in results)
        counts = np.sum([np.pad(result["draws"], (0, longest - len(result["draws"]))) for result in results], axis=0)
        parts = np.append(np.pad(counts, (0, len(shown)))[: len(shown)], counts[len(shown) :].sum()) / counts.sum()
        lines.append(f"| {arm} | " + " | ".join(f"{part:.2f}" for part in parts) + " |")
    return "\n".join(lines)
