"""The commands about what a run did: `mpidata report` and `mpidata advise`."""

from __future__ import annotations

import click

__all__ = ["advise", "report"]


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", metavar="FILE", type=click.Path(), help="Write this file.")
def report(runs: tuple[str, ...], output: str | None) -> None:
    """Write the report of the run of the folder RUN as report.html there; of several, beside one another.

    The runs may have ended, may go on, or may have been killed.
    """
    from mpidata.reporting.make import make_report  # each command loads only what it needs

    click.echo(f"Open {make_report(runs, output)}")


@click.command()
@click.argument("run", type=click.Path())
@click.option("--cores", metavar="N", type=click.IntRange(min=1), help="Say what would be best on so many cores.")
def advise(run: str, cores: int | None) -> None:
    """Say what held back the run of the folder RUN, and how many groups and trainers would be balanced."""
    from mpidata.reporting.advice.run import advise_run
    from mpidata.reporting.reading.look import look_at

    for sentence in advise_run(look_at(run), cores).sentences:
        click.echo(sentence)
