"""Calls of a training script with or without a stream: report values and pictures, register objects, the replica."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, SupportsFloat

from mpidata.arrays import plain_number
from mpidata.errors import StreamError
from mpidata.figures.pictures import draw, write_picture
from mpidata.native.library import check
from mpidata.run.folder import RunFolder
from mpidata.run.job_environment import in_job, say_no_job
from mpidata.trainer import join
from mpidata.trainer.loader_access import group_place
from mpidata.trainer.replica.replica import Replica
from mpidata.trainer.trainer import Trainer

if TYPE_CHECKING:
    from mpidata.checkpoint.state import Stateful

__all__ = ["picture", "picture_of", "register", "replica", "report", "report_of"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME_LENGTH = 63


def register(**objects: Stateful) -> None:
    """Keep the states of these objects in the job's checkpoints, and restore them if the job resumes from one.

    Parameters
    ----------
    **objects : Stateful
        Objects with state_dict() and load_state_dict(): the model, the optimizer, ...

    Raises
    ------
    StreamError
        An object lacks these methods, the names differ from those in the checkpoint, a state does not fit, or this is
        the second call in this process, including `MPIStreamDataset.register`.

    Notes
    -----
    Call it once, before the loop, when the objects are on their devices. The first call of mpidata in a process joins
    the job, which is collective; otherwise this call is not. Each trainer keeps the states of its own objects. If the
    number of trainers has changed, trainer i gets those of trainer i modulo the former number. The states are taken
    between two batches, with torch.save. States that contain parts of tensors (DTensor) are saved by
    torch.distributed.checkpoint, collective over the default process group; the job may resume with any number of
    trainers. DataLoader and FileDataset need not be registered. Outside a job this has no effect.
    """
    if not in_job():
        from mpidata.checkpoint.state import check_stateful  # loads torch

        say_no_job()
        check_stateful(objects)
        return
    join.join().checkpoints.register(objects)


def report(**values: SupportsFloat) -> None:
    """Report values, for example a loss, for the progress display and the summary.

    Parameters
    ----------
    **values : float
        Floats, or values that convert to one: a tensor of one element, a NumPy scalar. NaN and infinity are allowed.

    Raises
    ------
    StreamError
        A name is not an identifier or is longer than 63 characters, or a value is not a number.

    Notes
    -----
    Any thread; does not block, except for the first call of mpidata in a process, which joins the job. Outside a job
    this has no effect.
    """
    if in_job():
        report_of(join.join(), values)
    else:
        say_no_job()
        _numbers(values)


def picture(name: str, picture: Any) -> None:
    """Write a picture for the report and the loggers, as `MPIStreamDataset.picture` does.

    Parameters, errors and notes are those of that method. The first call of mpidata in a process joins the job, which
    is collective. Outside a job nothing is written.
    """
    if in_job():
        picture_of(join.join(), name, picture)
    else:
        say_no_job()
        _check_name("picture", name)
        draw(name, picture)


def picture_of(trainer: Trainer, name: str, picture: Any) -> None:
    """Write a picture as `picture` does."""
    _check_name("picture", name)
    png = draw(name, picture)
    if trainer.replica.rank or trainer.is_alone:
        return
    try:
        write_picture(RunFolder(trainer.plan.run), name, trainer.drawn, png)
    except OSError as error:  # a full disk should not end the training
        print(
            f"mpidata: the picture {name!r} cannot be written: {error}. Training continues.",
            file=sys.stderr,
            flush=True,
        )


def report_of(trainer: Trainer, values: Mapping[str, SupportsFloat]) -> None:
    """Report values as `report` does."""
    for name, number in _numbers(values).items():
        check(trainer.library, trainer.library.mpidata_trainer_report(name.encode(), number))


def _numbers(values: Mapping[str, SupportsFloat]) -> dict[str, float]:
    return {name: _number(name, value) for name, value in values.items()}


def _check_name(call: str, name: Any) -> None:
    if not (isinstance(name, str) and _NAME.fullmatch(name)) or len(name) > _NAME_LENGTH:
        what = "value" if call == "report" else call
        fix = f"Use letters, digits and _, at most {_NAME_LENGTH} of them"
        raise StreamError(f"{call}: {name!r} cannot name a {what}. {fix}.")


def _number(name: str, value: Any) -> float:
    _check_name("report", name)
    try:
        return plain_number(value.detach() if hasattr(value, "detach") else value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise StreamError(f"report: {name}={value!r} is not a number. Report one float for each name.") from None


def replica() -> Replica:
    """Return the position of this process among the copies of the model.

    Returns
    -------
    Replica
        ``number`` and ``count``: the number of this process's copy, and the number of copies; the rank and size of data
        parallelism. ``rank`` and ``size``: the rank within the copy, and the number of ranks that hold it
        (``trainers.ranks_per_replica``); the rank and size of model parallelism. The rank in torch.distributed is
        ``number * size + rank``.

    Notes
    -----
    The first call of mpidata in a process joins the job, which is collective. Outside a job each process of
    torch.distributed is a replica.
    """
    if in_job():
        return join.join().replica
    say_no_job()
    rank, processes = group_place()
    return Replica(rank, processes)
