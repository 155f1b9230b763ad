"""The command `mpidata`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn, cast

import click

import mpidata
from mpidata.errors import JobFileError, LaunchError, MpidataError
from mpidata.native.build_flags import KINDS, LIBRARIES, flags_line
from mpidata.reporting.commands import advise, report
from mpidata.run.failsafe_output import FailsafeStream

if TYPE_CHECKING:
    from rich.console import Console

    from mpidata.config import Job

__all__ = ["main"]

_AFTERWARDS = ("report", "advise")
_JOB = click.argument("job", type=click.Path())
_SET = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Replace a key of the job file, for example buffer.capacity=4000. May be given several times.",
)


class _Commands(click.Group):
    """Prints only the message of an MpidataError, and nothing for Ctrl-C."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MpidataError as error:
            _refuse(error, ctx.invoked_subcommand)
        except KeyboardInterrupt:
            sys.exit(130)


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from mpidata.native.linked_mpi import linked_mpi

        click.echo(f"mpidata {mpidata.__version__}\nbuilt with {linked_mpi() or 'no MPI: run `pip install .`'}")
        context.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
def main() -> None:
    """Stream a running ensemble of MPI simulations into PyTorch training."""


@main.command()
@click.argument("job", type=click.Path(), required=False)
@_SET
@click.option("--resume", metavar="RUN", type=click.Path(), help="Resume the run in the folder RUN. Takes no JOB.")
@click.option(
    "--replay", metavar="RUN", type=click.Path(), help="Replay the run in the folder RUN, batch by batch. Takes no JOB."
)
@click.option("--retry-set-aside", is_flag=True, help="With --resume: rerun simulations that were set aside.")
@click.option(
    "--restarts", metavar="N", type=click.IntRange(min=0), default=0, help="Resume automatically, up to N times."
)
@click.option("--as", "name", metavar="NAME", help="Resume the run started under NAME, or start it.")
@click.option("--dry-run", is_flag=True, help="Print the launcher's command and the memory needed; start nothing.")
def run(
    job: str | None,
    overrides: tuple[str, ...],
    resume: str | None,
    replay: str | None,
    retry_set_aside: bool,
    restarts: int,
    name: str | None,
    dry_run: bool,
) -> None:
    """Run the job that a job file describes.

    On one machine: mpidata run JOB. Under a launcher: mpirun -n N mpidata run JOB. N counts one rank for the
    scheduler, one for each trainer, and one for each rank of a solver.
    """
    from mpidata.launch.starting.environment import find_place, leave_step  # each command loads only what it needs

    leave_step(os.environ)
    if (job, resume, replay).count(None) != 2:
        raise click.UsageError("Give either a job file, or --resume or --replay with the folder of a run.")
    if replay is not None and (restarts or name is not None):
        raise click.UsageError("A replay cannot be resumed. Leave out --restarts and --as.")
    if name is not None and resume is not None:
        raise click.UsageError("--as finds the run to resume. Leave out --resume.")
    if retry_set_aside and resume is None:
        raise click.UsageError("--retry-set-aside applies only to a resumed run. Give --resume with its folder.")
    if not dry_run and (place := find_place(os.environ)) is not None:
        from mpidata.launch.starting.by_hand import run_by_hand

        if restarts or name is not None:
            option = "--restarts" if restarts else "--as"
            raise click.UsageError(f"{option} needs `mpidata run` without a launcher: launchers cannot be restarted.")
        run_by_hand(job, overrides, place, resume, retry_set_aside, replay)
    from mpidata.launch.starting.local import print_command, run_local

    if dry_run:
        print_command(job, overrides, _console(), resume, replay, name)
    else:
        consoles = _console(), _console(stderr=True)
        sys.exit(run_local(job, overrides, *consoles, resume, restarts, name, retry_set_aside, replay))


@main.command()
@click.argument("job", type=click.Path(), required=False)
@_SET
@click.option("--template", metavar="TEMPLATE", help="Use this template or file instead of slurm.template.")
@click.option("--print", "show", is_flag=True, help="Print the script; submit nothing.")
@click.option("--parsable", is_flag=True, help="Print only the number of the Slurm job, like sbatch --parsable.")
@click.option("--show-template", metavar="NAME", help="Print a template, as a start for your own. Takes no JOB.")
def submit(
    job: str | None,
    overrides: tuple[str, ...],
    template: str | None,
    show: bool,
    parsable: bool,
    show_template: str | None,
) -> None:
    """Submit the job of a job file to Slurm."""
    from mpidata.config import load_job
    from mpidata.launch.batch import submit as submitting
    from mpidata.launch.batch.template import read_template
    from mpidata.launch.starting.environment import leave_step

    leave_step(os.environ)
    if (job is None) == (show_template is None):
        raise click.UsageError("Give either a job file, or --show-template with the name of a template.")
    if show_template is not None:
        click.echo(read_template(show_template, Path())[0], nl=False)
    elif show:
        loaded = load_job(str(job), overrides)
        _show_notes(loaded)
        click.echo(submitting.batch_script(loaded, overrides, template), nl=False)
    else:
        said, submitted, output = submitting.submit(str(job), overrides, template)
        _show_notes(submitted)
        number = said.partition(";")[0]
        if parsable:
            click.echo(said)
            return
        click.echo(f"Submitted {submitted.name} as job {number}. Its output: {output}")


@main.command()
@_JOB
@_SET
def check(job: str, overrides: tuple[str, ...]) -> None:
    """Check a job file and draw its parameters, without starting anything."""
    from mpidata.config import load_job
    from mpidata.sampling.drawing import draw_parameters

    loaded = load_job(job, overrides)
    _show_notes(loaded)
    draw_parameters(loaded)
    if loaded.trainers.at_least:
        from mpidata.launch.starting.fault_tolerance import check_elastic
        from mpidata.launch.starting.launcher import find_launcher

        check_elastic(loaded, find_launcher(loaded, os.environ).fault_tolerance())
    simulations, parameters = loaded.simulations + loaded.validation.count, len(loaded.parameter_names)
    each = f"{parameters} parameter{'s' if parameters != 1 else ''} each"
    what = f"{simulations} simulations with {each}" if loaded.solvers.groups else "no simulations"
    click.echo(f"{job}: correct. {loaded.world_size} ranks, {what}.")


@main.command()
@click.argument("job", type=click.Path(), required=False)
@_SET
@click.option(
    "--test", "with_jobs", is_flag=True, help="Also run two small jobs, to test an installation; takes 60 seconds."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def doctor(job: str | None, overrides: tuple[str, ...], with_jobs: bool, as_json: bool) -> None:
    """Check this machine, its MPI, and what JOB needs if it is given. The exit status is 1 if jobs cannot run."""
    from mpidata.doctor import examine, finding, try_jobs
    from mpidata.launch.starting.environment import leave_step

    leave_step(os.environ)
    if overrides and job is None:
        raise click.UsageError("--set changes a key of a job file. Give the job file.")
    found = examine(job, overrides)
    if with_jobs and not any(each.check == "libmpidata" and each.state == "failed" for each in found):
        found += try_jobs()
    if as_json:
        click.echo(finding.as_json(found))
    else:
        finding.show(found, _console())
    sys.exit(any(each.state == "failed" for each in found))


@main.command()
@click.argument("run", type=click.Path())
@click.option("--loaders", metavar="N", type=int, help="New number of loaders.")
@click.option("--groups", metavar="N", type=int, help="New number of solver groups.")
@click.option("--trainers", metavar="N", type=int, help="New number of trainers, from the next step on.")
def scale(run: str, loaders: int | None, groups: int | None, trainers: int | None) -> None:
    """Change the number of loaders, solver groups or trainers of a running job, whose run folder is RUN."""
    from mpidata.launch.watching.scale import scale as ask

    wanted = {
        kind: count
        for kind, count in (("loaders", loaders), ("groups", groups), ("trainers", trainers))
        if count is not None
    }
    if not wanted:
        raise click.UsageError("Give --loaders, --groups or --trainers, with the new number.")
    for sentence in ask(run, wanted):
        click.echo(sentence)


@main.command("try", context_settings={"ignore_unknown_options": True})
@click.option("--record", metavar="FOLDER", type=click.Path(), help="Use the samples of this record.")
@click.option("--made-up", metavar="JOB", type=click.Path(), help="Use random samples, as this job file declares them.")
@click.option("--job", metavar="JOB", type=click.Path(), help="The job file, if the record is not in its run folder.")
@_SET
@click.option(
    "--steps",
    metavar="N",
    type=click.IntRange(min=1),
    default=20,
    help="Steps of each made-up simulation; the default is 20.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def try_(
    record: str | None, made_up: str | None, job: str | None, overrides: tuple[str, ...], steps: int,
    command: tuple[str, ...],
) -> None:  # fmt: skip
    """Run a training script without a job, a launcher or MPI. Its samples come from a record or are made up.

    COMMAND is a script (*.py) with its arguments, or a program that runs one, for example a debugger or a notebook
    server. All options after -- belong to COMMAND.
    """
    from mpidata.launch.starting.trying import try_script

    if (record is None) == (made_up is None):
        raise click.UsageError("Give either --record with the folder of a record, or --made-up with a job file.")
    if job is not None and record is None:
        raise click.UsageError("--job is only for --record: --made-up already names the job file. Leave out --job.")
    sys.exit(try_script(command, record, made_up or job, overrides, steps))


@main.command("list")
@click.argument("folder", type=click.Path(), default="runs")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def list_runs(folder: str, as_json: bool) -> None:
    """List the runs in FOLDER (default: runs), with their status and progress."""
    from mpidata.launch.watching.runs import show_runs
    from mpidata.run.run_states import look_at_runs

    found = look_at_runs(folder)
    if as_json:
        click.echo(json.dumps(found, indent=1))
    else:
        show_runs(found, folder, _console())


@main.command()
@click.argument("run", type=click.Path())
@click.option("--once", is_flag=True, help="Show the state once and exit.")
def watch(run: str, once: bool) -> None:
    """Show the progress of the run in the folder RUN, on any machine that sees RUN. Ctrl-C ends only the display."""
    from mpidata.launch.page.watch import watch_run

    watch_run(run, once, _console())


def _kinds(command: Callable[..., None]) -> Callable[..., None]:
    for kind, text in reversed(KINDS.items()):
        command = click.option(f"--{kind}", kind, is_flag=True, help=f"{text[0].upper()}{text[1:]}.")(command)
    return command


for _command in (report, advise):
    main.add_command(_command)


@main.command()
@_kinds
def config(**wanted: bool) -> None:
    """Print compiler flags for a solver: mpicc solver.c $(mpidata config --cflags --libs)."""
    kinds = [kind for kind in KINDS if wanted[kind]]
    if not kinds:
        raise click.UsageError(f"Nothing to print. Give one or more of --{', --'.join(KINDS)}.")
    if len(libraries := [kind for kind in kinds if kind in LIBRARIES]) > 1:
        raise click.UsageError(f"A program is linked with one library. Give --{' or --'.join(libraries)} alone.")
    click.echo(flags_line(kinds))


def _show_notes(job: Job) -> None:
    for note in job.notes:
        click.echo(note, err=True)


def _refuse(error: MpidataError, command: str | None) -> NoReturn:
    # Status 2 means that nothing was started; a report may fail halfway.
    from rich.text import Text

    _console(stderr=True).print(Text(f"mpidata: {error}", "red"), soft_wrap=True)
    halfway = command in _AFTERWARDS and not isinstance(error, JobFileError | LaunchError)
    sys.exit(1 if halfway else 2)


def _console(stderr: bool = False) -> Console:
    from mpidata.launch.page.console import SafeConsole

    stream = cast(IO[str], FailsafeStream(sys.stderr if stderr else sys.stdout))
    return SafeConsole(file=stream, stderr=stderr, highlight=False, markup=False)
