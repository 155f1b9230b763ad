"""The nodes that a job may use: those that a batch system has given to it, or those of the job file."""

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
        As the batch system knows it.
    cpus : int
        Number of its CPUs that belong to the job.
    gpus : int or None
        Number of its GPUs that belong to the job; None where nothing tells.
    """

    name: str
    cpus: int
    gpus: int | None = None


@dataclasses.dataclass(frozen=True)
class Allocation:
    """What a job may use.

    Parameters
    ----------
    job : str
        Name of the batch system and number of the job, `Slurm job 7`; empty where the job file names the hosts.
    components : tuple of tuple of Node
        One tuple of nodes; of a heterogeneous job one for each component, in order.
    variable : str
        The environment variable that tells of the job.
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
        """Where it comes from, for messages."""
        return self.job or "Key 'launch.hosts'"

    @property
    def advice(self) -> str:
        """How to get a larger one, for messages."""
        return "Ask for more (`mpidata submit` asks for enough)" if self.job else "Add hosts or CPUs there"

    def without(self, names: Collection[str]) -> Allocation:
        """Return the same but for some nodes."""
        left = (tuple(node for node in nodes if node.name not in names) for nodes in self.components)
        return dataclasses.replace(self, components=tuple(left))


def named_hosts(hosts: Sequence[str]) -> Allocation:
    """Make an allocation of `launch.hosts`, each of them `name:cpus`."""
    parts = [host.rpartition(":") for host in hosts]
    return Allocation("", (tuple(Node(name, int(cpus)) for name, _, cpus in parts),))
