"""The samples that a run's trainers drew: one file per trainer and start, and the part of it that counts.

A resumed run continues at a batch, so what an earlier start drew after that batch counts as unused.
"""

import math
from pathlib import Path
from typing import NamedTuple


class Part(NamedTuple):
    """What counts of one start: its first batch, and each trainer's batches as lists of sample names."""

    attempt: int
    resumed: int
    batches: dict[int, list[list[str]]]

    def keys(self) -> list[str]:
        """Return all samples, each as often as it was drawn."""
        return [key for batches in self.batches.values() for batch in batches for key in batch]


def begin(folder: Path, attempt: int, trainer: int, resumed: int) -> Path:
    """Create the file of a trainer in one start of the run; the caller appends a line per batch."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{attempt}-{trainer}"
    with path.open("x") as file:
        file.write(f"{resumed}\n")
    return path


def used(folder: Path, before: float = math.inf) -> list[Part]:
    """Return what was drawn before a batch and not drawn again later, in order of the starts."""
    starts: dict[int, dict[int, Path]] = {}
    for path in folder.glob("*-*"):
        attempt, trainer = map(int, path.name.split("-"))
        starts.setdefault(attempt, {})[trainer] = path
    parts = []
    for attempt, paths in sorted(starts.items(), reverse=True):
        # An incomplete last line is ignored.
        lines = {trainer: path.read_text().split("\n")[:-1] for trainer, path in paths.items()}
        heads = {int(text[0]) for text in lines.values() if text}
        assert len(heads) <= 1, f"start {attempt} went on at batches {heads}"
        if not heads or (resumed := heads.pop()) >= before:
            continue
        end = None if before == math.inf else int(before) - resumed + 1
        batches = {trainer: [line.split() for line in text[1:end]] for trainer, text in sorted(lines.items())}
        parts.append(Part(attempt, resumed, batches))
        before = resumed
    return parts[::-1]
