"""The command `python -m experiments`; `make experiments` runs it."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from experiments import heat, stepping
from experiments.runs import ROOT, make

_PARTS = {
    "samplers": stepping.confirmation,
    "tuning": stepping.tuning,
    "why": stepping.why,
    "heat": heat.part,
    "buffers": heat.buffers,
}


def main(arguments: list[str] | None = None) -> int:
    """Run the experiments that are still missing; return status 1 if some are left."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=sys.modules["experiments"].__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="smaller runs with fewer seeds, as a trial; do not quote the results"
    )
    parser.add_argument("--only", nargs="+", choices=_PARTS, help="these")
    parser.add_argument("--minutes", type=float, default=40.0, help="start no run after this many minutes; default 40")
    parser.add_argument("--at-once", type=int, default=1, help="so many runs at the same time; 1 if not given")
    parser.add_argument("--output", type=Path, help="folder for the results; else experiments/results")
    given = parser.parse_args(arguments)
    # A quick trial must not overwrite real results.
    default = ROOT / "build" / "experiments" if given.quick else ROOT / "experiments" / "results"
    output = given.output or default
    names = given.only or list(_PARTS)
    begun = time.monotonic()
    for name in names:
        left = given.minutes - (time.monotonic() - begun) / 60
        if not make(_PARTS[name](given.quick), output, left, given.at_once):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
