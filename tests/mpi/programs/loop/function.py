"""A simulation as a function, on all ranks of a group or on a single rank."""

import time

from loop.asking import ask
from loop.solving import OPTIONS, log_of, part, ragged, refresh, steps_of

from mpidata.solver import SimulationCancelled

_log = []


def by_rows(alpha, simulation, group):
    rank, size = group.Get_rank(), group.Get_size()
    if not _log:
        _log.append(log_of(group))
    log, step, how = _log[0], 0, "complete"
    log.note("begin", simulation)
    try:
        while step < steps_of(simulation, OPTIONS["steps"]):
            refresh(log, simulation, step)
            ask(simulation, step, rank)
            group.Barrier()
            more = {"p": ragged(simulation, step, rank)} if OPTIONS.get("ragged") else {}
            yield {"u": part(alpha, step, rank, size), **more}
            step += 1
            time.sleep(OPTIONS["step_s"])
    except (GeneratorExit, SimulationCancelled):  # the latter from a question
        how = "cancelled"
        raise
    finally:
        log.note("end", simulation, step, how)
