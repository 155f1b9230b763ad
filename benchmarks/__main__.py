"""The command `python -m benchmarks`; `make bench` runs it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import cases
from benchmarks.contender import ROOT, Contender
from benchmarks.roster import benchmarks, contenders
from benchmarks.stream import SIZES, Settings, render, run


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmarks; status 1 when a contender has failed or is missing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=sys.modules["benchmarks"].__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of 0.5 s, to try it; no figures to quote")
    parser.add_argument("--rounds", type=int, help="rounds; 5 if not given")
    parser.add_argument("--seconds", type=float, help="seconds of each measurement; 2 if not given")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="bytes of a sample")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="these benchmarks, or contenders of the stream by a part of the name"
    )
    parser.add_argument("--output", type=Path, help="folder for the page; else benchmarks/results")
    parser.add_argument("--render", action="store_true", help="only write the pages anew, from their .json files")
    parser.add_argument("--list", action="store_true", help="only show the benchmarks and contenders")
    given = parser.parse_args(arguments)
    # What was tried out must not take the place of what was measured.
    default = ROOT / "build" / "benchmarks" / "results" if given.quick else ROOT / "benchmarks" / "results"
    output = given.output or default
    chosen, others = choose(given.only)
    if given.render:
        for benchmark in others:
            if (output / f"{benchmark.NAME}.json").exists():
                benchmark.render(output)
        if chosen and (output / "stream.json").exists():
            render(output)
        return 0
    if given.list:
        print(
            "\n".join([f"{one.NAME}: {one.ABOUT}" for one in others] + [f"{one.name}: {one.about}" for one in chosen])
        )
        return 0
    rounds = given.rounds or (1 if given.quick else 5)
    seconds = given.seconds or (0.5 if given.quick else 2.0)
    without = []
    for benchmark in others:
        without += benchmark.run(cases.Settings(rounds, seconds, output))
        print(f"{output / benchmark.NAME}.md")
    if chosen:
        without += run(chosen, Settings(rounds, seconds, given.sizes, output))
        print(f"{output / 'stream.md'}")
    return 1 if without else 0


def choose(only: list[str] | None) -> tuple[list[Contender], list[cases.Benchmark]]:
    """Contenders of the stream benchmark, and further benchmarks, that are meant by `--only`."""
    others = benchmarks()
    if not only:
        return contenders(), others
    parts = [part for part in only if part not in {"stream", *(one.NAME for one in others)}]
    chosen = [one for one in contenders() if "stream" in only or any(part in one.name for part in parts)]
    return chosen, [one for one in others if one.NAME in only]


if __name__ == "__main__":
    sys.exit(main())
