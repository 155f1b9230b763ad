"""The plan's section on the solvers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["SolversSection", "solvers_of"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SolversSection:
    """The solver groups.

    `groups` run at once, 0 without solvers; `tolerate` is -1 if every simulation may be set aside; `carried` is the
    number of ranks of a carried program, or 0; `carried_each`: it is started for each simulation.
    """

    groups: int
    ranks_per_group: int
    in_flight: int
    start: str = "split"
    lifetime: str = "pool"
    spares: int = 0
    retries: int = 2
    timeout_s: float = 60.0
    start_timeout_s: float = 600.0
    join_timeout_s: float = 600.0
    tolerate: int = -1
    hosts: tuple[str, ...] = ()
    carried: int = 0
    carried_each: int = 0

    @property
    def has_stream(self) -> bool:
        """Whether there are solvers, whose samples the trainers receive."""
        return self.groups > 0

    @property
    def groups_in_world(self) -> int:
        """Number of groups that start with the world, including spares."""
        return self.groups + self.spares if self.start == "split" else 0


def solvers_of(job: Job) -> SolversSection:
    """Plan the solvers of a job."""
    solvers = job.solvers
    return SolversSection(
        groups=solvers.groups,
        ranks_per_group=solvers.ranks_per_group,
        in_flight=job.in_flight,
        start=solvers.start,
        lifetime="pool" if solvers.carried is not None else solvers.lifetime,
        spares=solvers.spares,
        retries=solvers.retries,
        timeout_s=solvers.timeout_s,
        start_timeout_s=solvers.start_timeout_s or max(600.0, solvers.timeout_s),
        join_timeout_s=job.launch.join_timeout_s,
        tolerate=-1 if solvers.tolerate is None else solvers.tolerate,
        hosts=solvers.hosts or (),
        carried=solvers.carried.ranks if solvers.carried is not None else 0,
        carried_each=int(solvers.carried is not None and solvers.lifetime == "simulation"),
    )
