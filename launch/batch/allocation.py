"""The nodes that a job may use: those that a batch system allocated, or those of the job file."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

__all__ = ["Allocation", "Node", "named_hosts"]


@dataclasses.dataclass(frozen=True)
class Node:
    """A node of an allocation.

    Parameters
    ----------
    name : str
        Its name in the batch system.
    cpus : int
        Number of its CPUs that belong to the job.
    gpus : int or None
        Number of its GPUs that belong to the job; None if unknown.
    """

    name: str
    cpus: int
    gpus: int | None = None


@dataclasses.dataclass(frozen=True)
class Allocation:
    """The nodes that a job may use.

    Parameters
    ----------
    job : str
        Name of the batch system and number of the job, `Slurm job 7`; empty if the job file names the hosts.
    components : tuple of tuple of Node
        One tuple of nodes; for a heterogeneous job, one per component, in order.
    variable : str
        The environment variable by which the allocation was recognized.
    has_srun : bool
        Whether srun can start programs on it.
    """

    job: str
    components: tuple[tuple[Node, ...], ...]
    variable: str = ""
    has_srun: bool = False

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes."""
        return tuple(node for component in self.components for node in component)

    @property
    def origin(self) -> str:
        """Origin of the nodes, for messages."""
        return self.job or "Key 'launch.hosts'"

    @property
    def advice(self) -> str:
        """How to get a larger allocation, for messages."""
        return "Ask for more (`mpidata submit` asks for enough)" if self.job else "Add hosts or CPUs there"

    def without(self, names: Collection[str]) -> Allocation:
        """Return the allocation without some nodes."""
        left = (tuple(node for node in nodes if node.name not in names) for nodes in self.components)
        return dataclasses.replace(self, components=tuple(left))


def named_hosts(hosts: Sequence[str]) -> Allocation:
    """Make an allocation from `launch.hosts`, whose entries are `name:cpus`."""
    parts = [host.rpartition(":") for host in hosts]
    return Allocation("", (tuple(Node(name, int(cpus)) for name, _, cpus in parts),))
