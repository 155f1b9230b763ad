"""Estimates the memory that each role of a job needs from its plan."""

from __future__ import annotations

from mpidata.run.plan import Plan

__all__ = ["memory_needs"]

_OWN = 250 << 20  # a Python process with torch and mpidata, CPU only
_SCHEDULER = 50 << 20
_OF_SIMULATION = 100  # on the scheduler, besides its parameters


def memory_needs(plan: Plan) -> list[str]:
    """Return a line for each role. Memory of the user's programs and of GPU libraries comes on top."""
    limits = {length.name: length.at_most for length in plan.lengths} | {"": 1}
    sample = sum(field.nbytes * limits[field.length] for field in plan.step_fields) + 8 * len(plan.parameters)
    constants = sum(field.nbytes * limits[field.length] for field in plan.constants)
    unlimited = " and ".join(name for name, limit in limits.items() if not limit)
    every = plan.simulations + plan.validation
    lines = [f"scheduler: {_size(_SCHEDULER + every * (_OF_SIMULATION + 8 * len(plan.parameters)))}"]
    if not plan.has_stream:
        return [*lines, f"each trainer: {_size(_OWN)}"]
    held = "steps" if plan.samples_window > 1 else "samples"
    buffer = plan.capacity * (1 if plan.capacity_in_bytes else sample)
    if unlimited:
        but = ", except in the buffers" if plan.capacity_in_bytes else ""
        lines.append(
            f"lengths {unlimited} without a limit (lengths.<name>.at_most): their fields come on top of this{but}"
        )
    more = "its share of the validation samples, " if plan.validation else ""
    what = "buffer.capacity" if plan.capacity_in_bytes else f"{plan.capacity} {held} of {_size(sample)}"
    lines.append(
        f"each trainer: {_size(_OWN + buffer)}, {_size(buffer)} of it for {what}; "
        f"on top of that come {more}its batches, and the data that solvers are sending"
    )
    if plan.constants:
        fixed = all(limits[field.length] for field in plan.constants)
        lines.append(
            f"each trainer: also {_size(constants) if fixed else 'the constants'} for each simulation of which it "
            "holds a sample (per: simulation)"
        )
    under_way = (plan.in_flight * sample + constants) // plan.ranks_per_group
    lines.append(f"each solver rank: at most {_size(under_way)} for the data that it is sending (solvers.in_flight)")
    if plan.carried:
        shared = (plan.in_flight + 1) * (sample + constants)
        lines.append(f"each rank of the carried program: at most {_size(shared)}, shared with its carrier")
    return lines


def _size(n: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n} B"
