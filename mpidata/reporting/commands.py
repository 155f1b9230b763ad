"""The commands that evaluate a run: `mpidata report` and `mpidata advise`."""

from __future__ import annotations

import click

__all__ = ["advise", "report"]


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", metavar="FILE", type=click.Path(), help="Write the report to FILE.")
def report(runs: tuple[str, ...], output: str | None) -> None:
    """Write a report of a run to report.html in its folder RUN. Several runs are compared side by side.

    The runs may have ended, be running, or have been killed.
    """
    from mpidata.reporting.make import make_report  # each command loads only what it needs
    from mpidata.reporting.output import is_stream

    path = make_report(runs, output)
    if not is_stream(path):  # a browser cannot open it, and stdout may be the report itself
        click.echo(f"Open {path}")


@click.command()
@click.argument("run", type=click.Path())
@click.option("--cores", metavar="N", type=click.IntRange(min=1), help="Recommend numbers for a machine with N cores.")
def advise(run: str, cores: int | None) -> None:
    """Report what limited the run in the folder RUN, and how many groups and trainers would be balanced."""
    from mpidata.reporting.advice.run import advise_run
    from mpidata.reporting.reading.run_snapshot import look_at

    look = look_at(run)
    for problem in look.problems:
        click.echo(problem, err=True)
    for sentence in advise_run(look, cores).sentences:
        click.echo(sentence)
