"""The commands about what a run did: `mpidata report`."""

from __future__ import annotations

import click

__all__ = ["report"]


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", metavar="FILE", type=click.Path(), help="Write this file.")
def report(runs: tuple[str, ...], output: str | None) -> None:
    """Write the report of the run of the folder RUN as report.html there; of several, beside one another.

    The runs may have ended, may go on, or may have been killed.
    """
    from mpidata.reporting.make import make_report  # each command loads only what it needs

    click.echo(f"Open {make_report(runs, output)}")
