"""Sizes of the meshes that are sent, the same for every sender."""

from __future__ import annotations

from pathlib import Path

import numpy as np

__all__ = ["NODE_BYTES", "nodes", "write_nodes"]

NODE_BYTES = 12  # two coordinates and a value, float32
_STEPS = 4096  # after which the sizes repeat


def nodes(sample_bytes: int, steps: int = _STEPS) -> list[int]:
    """Return the node counts of the first steps' meshes: 0.5 to 1.5 times those of a mesh of the given bytes."""
    mean = sample_bytes // NODE_BYTES
    once: list[int] = np.random.default_rng(0).integers(mean // 2, 3 * mean // 2, _STEPS, endpoint=True).tolist()
    return (once * (steps // _STEPS + 1))[:steps]


def write_nodes(folder: Path, sample_bytes: int) -> None:
    """Write the counts for the C solver: a text file `nodes` that starts with their number."""
    (folder / "nodes").write_text(" ".join(map(str, [_STEPS, *nodes(sample_bytes)])))
