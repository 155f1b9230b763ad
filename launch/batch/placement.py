"""Which rank runs on which node: trainers first, the scheduler beside the first one, the others on the rest."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

from mpidata.errors import LaunchError
from mpidata.launch.batch.allocation import Allocation, Node
from mpidata.launch.batch.layout import LOOP_AND_RECEIVE, Layout

__all__ = ["Layout", "Placement", "place", "tasks_per_node"]


@dataclasses.dataclass(frozen=True)
class Placement:
    """The node of each rank of the world.

    Parameters
    ----------
    hosts : tuple of str
        Name of the node of each rank, in order of rank.
    components : tuple of int
        Number of ranks in each component of a heterogeneous job; one number otherwise.
    trainer_cpus : int
        CPUs that each trainer has to itself: the smallest number over all trainers.
    unused : tuple of str
        Nodes without a rank, on which the job may spawn groups.
    """

    hosts: tuple[str, ...]
    components: tuple[int, ...]
    trainer_cpus: int
    unused: tuple[str, ...] = ()

    def lines(self, layout: Layout) -> Iterator[str]:
        """Yield a line for each node that lists what runs there."""
        for host in dict.fromkeys(self.hosts):
            ranks = [rank for rank, name in enumerate(self.hosts) if name == host]
            trainers = sorted(layout.order[rank - 1] for rank in ranks if 1 <= rank <= layout.trainers)
            rest = [rank - 1 - layout.trainers for rank in ranks if rank > layout.trainers]
            solvers = [rank for rank in rest if rank < layout.groups * layout.ranks_per_group]
            last = [rank - layout.groups * layout.ranks_per_group for rank in rest[len(solvers) :]]
            loaders = [rank for rank in last if rank < layout.loaders]
            behind = [rank - layout.loaders for rank in last[len(loaders) :]]
            inference = [rank for rank in behind if rank < layout.inference]
            after = [rank - layout.inference for rank in behind[len(inference) :]]
            learners = [rank for rank in after if rank < layout.learners]
            servers = [rank - layout.learners for rank in after[len(learners) :]]
            parts = ["the scheduler"] if 0 in ranks else []
            parts += [_numbers("trainer", trainers)] if trainers else []
            if solvers:
                groups = sorted({solver // layout.ranks_per_group for solver in solvers})
                count = f" ({len(solvers)} solver{'s' if len(solvers) > 1 else ''})"
                parts.append(_numbers("group", groups) + count)
            parts += [_numbers("loader", loaders)] if loaders else []
            parts += [_numbers("inference rank", inference)] if inference else []
            parts += [_numbers("learner", learners)] if learners else []
            parts += [_numbers("server", servers)] if servers else []
            yield f"{host}: {', '.join(parts)}"


def place(layout: Layout, allocation: Allocation) -> Placement:
    """Place the ranks of a job on the nodes of an allocation.

    Parameters
    ----------
    layout : Layout
        Of the job.
    allocation : Allocation
        If it is heterogeneous, trainers go to the first component, solvers and loaders to the second.

    Raises
    ------
    LaunchError
        The ranks do not fit.

    Notes
    -----
    A trainer gets two CPUs: one for the training loop, one for its receive thread. If there are too few CPUs, it gets
    one. The trainers of a replica are consecutive. A group stays on one node if a node has room for it. Groups, then
    loaders, spread over the nodes, those of trainers last.
    """
    if len(allocation.components) > 2:
        raise LaunchError(
            f"{allocation.job} has {len(allocation.components)} components. Use two: the first "
            "for the trainers, the second for the solvers and loaders."
        )
    _check_cpus(layout, allocation)
    error: LaunchError | None = None
    for cpus in (LOOP_AND_RECEIVE, 1):
        try:
            return _place(layout, allocation, cpus)
        except LaunchError as found:
            error = found
    assert error is not None
    raise error


def _check_cpus(layout: Layout, allocation: Allocation) -> None:
    parts: list[tuple[str, int, tuple[Node, ...]]]
    if len(allocation.components) == 2:
        of_trainers, of_others = allocation.components
        parts = [("the trainers", layout.trainers, of_trainers), (_others(layout), layout.others, of_others)]
    else:
        parts = [("the job", layout.trainers + layout.others, allocation.nodes)]
    for who, needed, nodes in parts:
        cpus = sum(node.cpus for node in nodes)
        if needed > cpus:
            groups, loaders = layout.groups + layout.later, layout.loaders + layout.loaders_later
            of_the_job = f"{layout.trainers} trainers"
            of_the_job += f", {groups} groups of {layout.ranks_per_group}" if groups else ""
            of_the_job += f", {loaders} loaders" if loaders else ""
            of_the_job += f", {layout.inference} inference ranks" if layout.inference else ""
            of_the_job += f", {layout.learners} ranks for the sampler" if layout.learners else ""
            of_the_job += f", {layout.servers} servers" if layout.servers else ""
            keys = ["'solvers.groups'"] * bool(groups) + ["'loaders.ranks'"] * bool(loaders)
            keys += ["'inference.ranks'"] * bool(layout.inference) + ["'trainers.ranks'"]
            raise LaunchError(
                f"The nodes for {who} have {_count(cpus, 'CPU')}, but {who} need{'s' if who == 'the job' else ''} "
                f"{needed} ({of_the_job}). {allocation.origin}. {allocation.advice}, or lower "
                f"{', '.join(keys[:-1])} or {keys[-1]}."
            )


def _others(layout: Layout) -> str:
    loaders = layout.loaders + layout.loaders_later
    if layout.last:
        return "the other ranks"
    return "the solvers and loaders" if layout.solvers and loaders else "the loaders" if loaders else "the solvers"


def _place(layout: Layout, allocation: Allocation, trainer_cpus: int) -> Placement:
    two = len(allocation.components) == 2
    # Two components may have CPUs on the same node, each its own.
    free, free_of_rest = ({node.name: node.cpus for node in allocation.components[i]} for i in (0, -1))
    trainers = _place_trainers(layout, allocation, trainer_cpus, free)
    rest, free_of_rest = [node.name for node in allocation.components[-1]], free_of_rest if two else free
    first = [name for name in rest if name not in trainers]
    others = _place_groups(layout, first, rest, free_of_rest)
    others += _place_loaders(layout, first, rest, free_of_rest)
    hosts = (trainers[0], *(trainers[number] for number in layout.order), *others)
    unused = tuple(node.name for node in allocation.nodes if node.name not in hosts)
    components = (1 + len(trainers), len(others)) if two else (len(hosts),)
    rooms = [(free[name] + trainer_cpus * trainers.count(name)) // trainers.count(name) for name in trainers]
    return Placement(hosts, components, min(rooms), unused)


def _place_trainers(layout: Layout, allocation: Allocation, cpus: int, free: dict[str, int]) -> list[str]:
    nodes = allocation.components[0]
    hosts: list[str] = []
    left = layout.trainers
    for node in nodes:
        room = free[node.name] // cpus
        wanted = min(left, layout.per_node or left)
        if layout.gpus_per_rank and node.gpus is not None:
            room = min(room, node.gpus // layout.gpus_per_rank)
        if layout.per_node is not None and room < wanted:
            continue
        hosts += [node.name] * min(room, wanted)
        free[node.name] -= cpus * min(room, wanted)
        left = layout.trainers - len(hosts)
    if not left:
        return hosts
    gpus = f" with {layout.gpus_per_rank} GPUs each" if layout.gpus_per_rank else ""
    each = f"at {layout.per_node} a node " if layout.per_node is not None else ""
    has = ", ".join(
        f"{n.name}: {_count(n.cpus, 'CPU')}" + (f", {_count(n.gpus, 'GPU')}" if n.gpus else "") for n in nodes
    )
    raise LaunchError(
        f"There is room for {len(hosts)} of {layout.trainers} trainers {each}on the nodes of this allocation{gpus} "
        f"({has}). {allocation.origin}. {allocation.advice}, or lower 'trainers.ranks' or 'trainers.per_node'."
    )


def _place_groups(layout: Layout, first: Sequence[str], rest: Sequence[str], free: dict[str, int]) -> list[str]:
    """Nodes of all solver ranks: whole groups on the emptiest node if they fit, the others split over what is left."""
    size = layout.ranks_per_group
    placed: dict[int, list[str]] = {}
    for group in range(layout.groups):
        for names in (first, rest):
            host = max(names, key=lambda name: free[name], default=None)
            if host is not None and free[host] >= size:
                placed[group] = [host] * size
                free[host] -= size
                break
    left = [name for name in (*first, *(name for name in rest if name not in first)) for _ in range(free[name])]
    if size * (layout.groups + layout.later - len(placed)) > len(left):
        raise LaunchError("There are too few CPUs.")
    for group in range(layout.groups):
        if group not in placed:
            placed[group], left = left[:size], left[size:]
            for host in placed[group]:
                free[host] -= 1
    return [host for group in range(layout.groups) for host in placed[group]]


def _place_loaders(layout: Layout, first: Sequence[str], rest: Sequence[str], free: dict[str, int]) -> list[str]:
    """Nodes of the loaders, inference ranks, learners and servers: each goes to the emptiest node."""
    hosts = []
    for _ in range(layout.loaders + layout.last):
        for names in (first, rest):
            host = max(names, key=lambda name: free[name], default=None)
            if host is not None and free[host] >= 1:
                hosts.append(host)
                free[host] -= 1
                break
    if layout.loaders + layout.loaders_later + layout.last > len(hosts) + sum(free[name] for name in rest):
        raise LaunchError("There are too few CPUs.")
    return hosts


def tasks_per_node(layout: Layout, nodes: int) -> int:
    """CPUs to request on each of several equal nodes so that the ranks fit.

    Parameters
    ----------
    layout : Layout
        Of the job.
    nodes : int
        Number of nodes.

    Raises
    ------
    LaunchError
        `per_node` requires more nodes.
    """
    plain = dataclasses.replace(layout, gpus_per_rank=0)
    most = layout.cpus + layout.ranks_per_group
    for cpus in range(max(1, math.ceil(layout.cpus / nodes)), most + 1):
        nodes_of = tuple(Node(f"{i}", cpus) for i in range(nodes))
        try:
            if _place(plain, Allocation("", (nodes_of,)), LOOP_AND_RECEIVE):
                return cpus
        except LaunchError:
            continue
    needed = math.ceil(layout.trainers / (layout.per_node or 1))
    raise LaunchError(
        f"{layout.trainers} trainers at {layout.per_node} a node need {needed} nodes, but there are {nodes}. "
        "Keys 'slurm.nodes', 'trainers.per_node'. Raise one of them."
    )


def _numbers(what: str, numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"{what} {numbers[0]}"
    if list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"{what}s {numbers[0]}-{numbers[-1]}"
    return f"{what}s {', '.join(map(str, numbers))}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"
