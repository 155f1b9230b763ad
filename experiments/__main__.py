"""The command `python -m experiments`; `make experiments` runs it."""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path

from experiments import heat, stepping
from experiments.runs import ROOT, make

_PARTS = {"heat": heat.part} | {name: partial(stepping.part, name) for name in stepping.EQUATIONS}
_MORE = ("kuramoto-sivashinsky",)  # made with --all


def main(arguments: list[str] | None = None) -> int:
    """Make the experiments that are not made yet; status 1 where some are left."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=sys.modules["experiments"].__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="smaller ones with fewer seeds, to try it; not to be quoted"
    )
    parser.add_argument("--all", action="store_true", help=f"{', '.join(_MORE)}, too")
    parser.add_argument("--only", nargs="+", choices=_PARTS, help="these")
    parser.add_argument(
        "--minutes", type=float, default=40.0, help="begin no run after so many minutes; 40 if not given"
    )
    parser.add_argument("--output", type=Path, help="folder for the results; else experiments/results")
    given = parser.parse_args(arguments)
    # What was tried out must not take the place of what was measured.
    default = ROOT / "build" / "experiments" if given.quick else ROOT / "experiments" / "results"
    output = given.output or default
    names = given.only or [name for name in _PARTS if given.all or name not in _MORE]
    begun = time.monotonic()
    for name in names:
        left = given.minutes - (time.monotonic() - begun) / 60
        if not make(_PARTS[name](given.quick, output / name), output / name, left):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
