"""The command `python -m benchmarks`; `make bench` runs it."""

from __future__ import annotations

import argparse
import dataclasses
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from benchmarks import cases, front, stream
from benchmarks.contender import ROOT, Contender
from benchmarks.roster import benchmarks, contenders
from benchmarks.rounds import forget


@dataclasses.dataclass(frozen=True)
class Chosen:
    """What to measure: contenders of the stream benchmark, the file for their results, and other benchmarks."""

    contenders: list[Contender]
    file: str
    others: list[cases.Benchmark]


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmarks; return status 1 if a contender failed or is missing, 130 or 143 if interrupted."""
    given = _parser().parse_args(arguments)
    # A quick trial must not overwrite real results.
    default = ROOT / "build" / "benchmarks" / "results" if given.quick else front.RESULTS
    output = given.output or default
    chosen = choose(given.only, given.all)
    if given.list:
        about = [f"{one.NAME}: {one.ABOUT}" for one in chosen.others]
        print("\n".join(about + [f"{one.name}: {one.about}" for one in chosen.contenders]))
        return 0
    if given.render:
        _render(chosen if given.only else choose(None, True), output)
        return 0
    if given.fresh:
        for name in [chosen.file, *(one.NAME for one in chosen.others)]:
            forget(output / f"{name}.json")
    rounds = given.rounds or (1 if given.quick else 3 if given.all else 5)
    seconds = given.seconds or (0.5 if given.quick else 2.0)
    os.environ.setdefault("MPIDATA_REPORT", "false")  # the report takes seconds after each job and is not measured
    before = signal.signal(signal.SIGTERM, _end)  # exit as on SIGINT, so that running jobs are also ended
    try:
        without = _measure(chosen, stream.Settings(rounds, seconds, given.sizes, output, chosen.file))
    except (KeyboardInterrupt, SystemExit) as error:
        print("Interrupted. The same command resumes; --fresh starts over.", file=sys.stderr)
        return 130 if isinstance(error, KeyboardInterrupt) else 143
    finally:
        signal.signal(signal.SIGTERM, before)
    for line in without:
        print(line, file=sys.stderr)
    return 1 if without else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=sys.modules["benchmarks"].__doc__,
        epilog="After an interrupt the same command resumes: what was measured is not measured again.",
    )
    parser.add_argument("--all", action="store_true", help="all contenders and benchmarks, not just the front page")
    parser.add_argument("--fresh", action="store_true", help="measure again what was measured")
    parser.add_argument("--quick", action="store_true", help="one round of 0.5 s, to try it; no figures to quote")
    parser.add_argument("--rounds", type=int, help="rounds; 5 if not given, 3 with --all")
    parser.add_argument("--seconds", type=float, help="seconds of each measurement; 2 if not given")
    parser.add_argument("--sizes", type=int, nargs="+", default=stream.SIZES, help="bytes of a sample")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="these benchmarks, or contenders of the stream by a part of the name"
    )
    parser.add_argument("--output", type=Path, help="folder for the page; else benchmarks/results")
    parser.add_argument("--render", action="store_true", help="only write the pages anew, from their .json files")
    parser.add_argument("--list", action="store_true", help="only show the benchmarks and contenders")
    return parser


def _end(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)


def _render(chosen: Chosen, output: Path) -> None:
    for benchmark in chosen.others:
        if (output / f"{benchmark.NAME}.json").exists():
            benchmark.render(output)
    if chosen.contenders:
        stream.render(output)


def _measure(chosen: Chosen, settings: stream.Settings) -> list[str]:
    """Measure; return what is missing or failed."""
    without = []
    if chosen.contenders:
        without += stream.run(chosen.contenders, settings)
        print(f"{settings.output / chosen.file}.md")
    for benchmark in chosen.others:
        without += benchmark.run(cases.Settings(settings.rounds, settings.seconds, settings.output))
        print(f"{settings.output / benchmark.NAME}.md")
    return without


def choose(only: list[str] | None, all_: bool = False) -> Chosen:
    """Return the contenders of the stream benchmark and the other benchmarks that `--only` and `--all` select."""
    if all_ and not only:
        return Chosen(contenders(), "stream", benchmarks())
    fronts = [one for one in contenders() if any(one.row in rows for rows in front.ROWS.values())]
    names = set(only or [front.NAME])
    others = benchmarks()
    parts = [part for part in names if part not in {front.NAME, "stream", *(one.NAME for one in others)}]
    if front.NAME in names and not parts and "stream" not in names:
        return Chosen(fronts, front.NAME, [one for one in others if one.NAME in names])
    chosen = [one for one in contenders() if "stream" in names or any(part in one.name for part in parts)]
    return Chosen(chosen, "stream", [one for one in others if one.NAME in names])


if __name__ == "__main__":
    sys.exit(main())
