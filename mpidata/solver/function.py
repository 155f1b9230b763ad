"""The solver program of a job whose job file names a Python function: ``solvers: {function: "heat:simulate"}``.

The function is a generator. It gets the parameters by name, and yields, for each step, ``{field: array}`` or ``(time,
{field: array})``; without a time, the time is the number of the step. Before the first step it yields fields with
``per: simulation``, in a `Constants`. An argument ``simulation`` gets the simulation's id, and an argument ``group``
the communicator of its group (mpi4py).

A function with an argument ``group`` runs on all ranks of its group. Each yields its own part of each step: an array
for a whole field, ``(array, start)`` for a block, a list of such blocks, or nothing (``{}``). A function without
``group`` runs only on the group's first rank.

If a simulation is cancelled, the function is closed at its `yield`. If it raises `GiveUp`, the simulation is set aside.
After any other exception the try has failed; a group of several ranks is then lost, because the state of the other
ranks is unknown.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import operator
import os
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mpidata import solver
from mpidata.arrays import plain_number
from mpidata.errors import DeviceError, GiveUp, LibraryError, MpidataError, NotFiniteError, SimulationCancelled
from mpidata.native.uncaught import describe, fail
from mpidata.native.waiting import wait
from mpidata.solver.constants import Constants
from mpidata.solver.group_rank import GroupRank, StopSimulation
from mpidata.solver.simulation import Simulation

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["find_function", "main", "names_wanted", "put_steps", "unpack"]

_EXTRAS = ("group", "simulation")
_OVER, _STEP, _GIVEN_UP = range(3)

Function = Callable[..., Iterable[Any]]


def find_function(name: str) -> Function:
    """Import a function.

    Parameters
    ----------
    name : str
        ``module:function``; the module is looked up in the working directory first.

    Raises
    ------
    MpidataError
        There is no such module or function. Exceptions that the module raises during import pass through.
    """
    module_name, _, function_name = name.partition(":")
    if not module_name or not function_name:
        raise MpidataError(f"solvers.function is {name!r}. Write module:function, for example heat:simulate.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise MpidataError(
            f"solvers.function {name!r}: there is no module {error.name!r}, in {os.getcwd()} or installed. "
            "Correct the name, or put the file beside the job file."
        ) from None
    function = getattr(module, function_name, None)
    if not callable(function):
        raise MpidataError(
            f"solvers.function {name!r}: {module.__file__} has no function {function_name!r}. Correct the name, or "
            "define the function."
        )
    return function  # type: ignore[no-any-return]


def names_wanted(name: str, function: Function, parameters: Sequence[str] | None) -> list[str]:
    """Check that a function can be called with the parameters by name.

    Parameters
    ----------
    name : str
        As in the job file, for messages.
    function : callable
        The user's function.
    parameters : sequence of str or None
        Names of the job's parameters; None outside a job: those of the function's arguments.

    Returns
    -------
    list of str
        Names of the arguments to pass: the parameters, then ``group`` and ``simulation`` if the function has them.

    Raises
    ------
    MpidataError
        The function lacks an argument for a parameter, or has an argument for which there is no parameter.
    """
    arguments = inspect.signature(function).parameters.values()
    takes_any = any(argument.kind is argument.VAR_KEYWORD for argument in arguments)
    named = [a for a in arguments if a.kind in (a.POSITIONAL_OR_KEYWORD, a.KEYWORD_ONLY)]
    taken = [argument.name for argument in named]
    if parameters is None:
        parameters = [argument for argument in taken if argument not in _EXTRAS]
    extras = [extra for extra in _EXTRAS if extra in taken and extra not in parameters]
    given = [*parameters, *extras]
    unknown = [] if takes_any else [parameter for parameter in parameters if parameter not in taken]
    if unknown:
        raise MpidataError(
            f"solvers.function {name!r} does not take {_list(unknown)}, but parameters.space has it. Its arguments are "
            f"{_list(taken)}. Give it an argument of that name, or remove the parameter from the job file."
        )
    missing = [a.name for a in arguments if a.default is a.empty and a.name not in given and not _collects(a)]
    if missing:
        raise MpidataError(
            f"solvers.function {name!r} needs {_list(missing)}, which it does not get by name. The parameters of the "
            f"job are {_list(parameters)}. Add the parameter to parameters.space, or give the argument a default."
        )
    return given


def unpack(name: str, item: Any, step: int) -> tuple[float, Mapping[str, Any]]:
    """Return the time and the fields that a function has yielded; raises MpidataError if the form is wrong."""
    if isinstance(item, Mapping):
        return float(step), item
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], Mapping):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            return plain_number(item[0]), item[1]
    raise MpidataError(
        f"{name} yielded {_short(item)}. Yield {{field: array}} or (time, {{field: array}}) for each step."
    )


def put_steps(name: str, steps: Iterable[Any], simulation: Simulation) -> Iterator[float]:
    """Put the fields that a function yields, and yield the time of each sample; the caller commits it."""
    if not isinstance(steps, Iterable):
        raise MpidataError(f"{name} returned {_short(steps)}, not a generator. Use `yield {{field: array}}` in it.")
    step = 0
    for item in steps:
        if isinstance(item, Constants):
            _put_fields(name, item, item, simulation)
            continue
        time, fields = unpack(name, item, step)
        _put_fields(name, item, fields, simulation)
        yield time
        step += 1


def _put_fields(name: str, item: Any, fields: Mapping[str, Any], simulation: Simulation) -> None:
    if not all(isinstance(field, str) for field in fields):
        raise MpidataError(f"{name} yielded {_short(item)}. The names of fields are texts: {{'u': array}}.")
    for field, value in fields.items():
        one = isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], np.ndarray)
        blocks = [value] if one or _is_block(value) else value
        if blocks is not value or (isinstance(value, (list, tuple)) and all(map(_is_block, value))):
            for array, start in blocks:
                simulation.put_block(field, array, start)
        elif isinstance(value, (list, tuple)) and any(map(_looks_like_block, value)):
            wrong = next(block for block in value if not _is_block(block))
            raise MpidataError(
                f"{name} yielded a list of blocks for field {field!r}, but {_short(wrong)} is not a block. Yield "
                "(array, start) for each, where start has a whole number for each dimension of the array."
            )
        else:
            simulation.put(**{field: value})


def _is_block(value: Any) -> bool:
    """Whether it is ``(array, start)``: as many whole numbers as the array has dimensions."""
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    array, start = value
    try:
        indices, shape = [operator.index(index) for index in start], np.shape(array)
    except Exception:  # any object may be yielded
        return False
    is_array = hasattr(array, "shape") and isinstance(start, tuple)  # `put_block` reports a wrong start
    return len(indices) == len(shape) or 0 in shape or (is_array and len(shape) > 0)


def _looks_like_block(value: Any) -> bool:
    """Whether it is an array and something else, as in a list of blocks of which one has a wrong start."""
    if not isinstance(value, tuple) or len(value) != 2 or hasattr(value[1], "shape"):
        return False
    return isinstance(value[0], np.ndarray) and value[0].ndim > 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run simulations with the function that the command line names, until there are no more."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1:
        fail("Usage: python -m mpidata.solver.function module:function")
    # Before the user's module is imported, so that its errors can be reported to the scheduler.
    rank, process = solver.joined(), os.getpid()
    try:
        _run(arguments[0], rank)
    except StopSimulation:
        raise
    except (Exception, SystemExit) as error:
        _end_child(process, error)
        _end(arguments[0], rank, error)


def _run(name: str, rank: GroupRank) -> None:
    function = find_function(name)
    wanted = names_wanted(name, function, rank.plan.told if rank.plan else None)
    group, process = solver.group(), os.getpid()
    one_rank = "group" not in wanted
    rank.others_follow = one_rank and group.Get_size() > 1
    for simulation in solver.simulations():
        if one_rank and group.Get_rank() > 0:
            _follow(simulation, group, rank.library.mpidata_beat)
            continue
        extras = {"group": group, "simulation": simulation.id}
        parameters = {key: extras[key] if key in extras else simulation.parameters[key] for key in wanted}
        end = _OVER
        try:
            steps = function(**parameters)
            try:
                for time in put_steps(name, steps, simulation):
                    if one_rank:
                        _tell(group, _STEP, time)
                    simulation.step(time)
            except SimulationCancelled:
                if isinstance(steps, Generator):
                    steps.close()
        except GiveUp as reason:
            _end_child(process, reason)
            end = _GIVEN_UP
            simulation.fail(str(reason) or "no reason given")
        except NotFiniteError as error:
            print(f"mpidata: {rank.place()}: {error}", file=sys.stderr, flush=True)
        except (MpidataError, StopSimulation):
            raise
        except (Exception, SystemExit) as error:
            _end_child(process, error)
            if rank.plan is None or group.Get_size() > 1:
                raise
            rank.try_failed(error)
        if one_rank:
            _tell(group, end)


def _end(name: str, rank: GroupRank, error: BaseException) -> NoReturn:
    """Report to the scheduler and the log why the function failed, and end this process."""
    if isinstance(error, MpidataError) and not (isinstance(error, DeviceError) and rank.may_die):
        sentence = str(error)
    else:
        traceback.print_exception(error)
        if rank.current is not None and rank.may_die:
            rank.end_raised(error)
            fail()
        what = describe(error, rank.plan.folder if rank.plan else Path.cwd())
        sentence = f"{name} raised {what}. {rank.place()}. Correct the function; it can be run alone, without a job."
    print(sentence, file=sys.stderr, flush=True)
    reported = isinstance(error, LibraryError) and not isinstance(error, DeviceError)  # by the library itself
    rank.end_job(None if reported else sentence)
    fail()


def _end_child(process: int, error: BaseException) -> None:
    """End a child that the function has forked and that returns to here: it does not belong to the job."""
    if os.getpid() == process:
        return
    code = error.code if isinstance(error, SystemExit) else 1
    if isinstance(error, MpidataError):
        print(f"mpidata: {error}", file=sys.stderr)
    elif not isinstance(error, SystemExit):
        traceback.print_exception(error)
    elif code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _tell(group: MPI.Intracomm, what: int, time: float = 0.0) -> None:
    """Notify the ranks that do not run the function: a step with this time follows, or the simulation ends."""
    if group.Get_size() > 1:
        wait(group.Ibcast(np.array([what, time], np.float64), root=0))


def _follow(simulation: Simulation, group: MPI.Intracomm, beat: Callable[[], object]) -> None:
    """Take part in the steps of the group's first rank, with signs of life while waiting for it."""
    message = np.empty(2)
    while True:
        wait(group.Ibcast(message, root=0), beat=beat)
        if message[0] == _STEP:
            with contextlib.suppress(NotFiniteError, SimulationCancelled):  # on all ranks; rank 0 ends the simulation
                simulation.step(float(message[1]))
            continue
        if message[0] == _GIVEN_UP:
            simulation.fail("")  # rank 0 reports the reason
        return


def _collects(argument: inspect.Parameter) -> bool:
    return argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD)


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) or "none"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{type(value).__name__} {text[:50]}..."


if __name__ == "__main__":
    main()
