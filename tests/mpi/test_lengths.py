"""Fields whose lengths differ between samples: each mistake gives one error; also layouts."""

from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import DRAIN, JobFolder, python
from test_misuse import assert_failed

FIELDS = {
    "xy": {"shape": ["nodes", 2]},
    "u": {"shape": ["nodes"], "dtype": "float64"},
    "ends": {"shape": [2, "edges"], "dtype": "int64", "index": "nodes"},
}
MISTAKES = {
    "unlike": ["Fields 'u' and 'xy' have 7 and 8 'nodes', which must be equal", "simulation 0, step 2"],
    "longer": ["The parts of field 'u' have 13 'nodes', at most 9 are declared", "simulation 0, step 2"],
    "beyond": ["Field 'ends' has the index 7, but there are 7 'nodes', which are counted from 0 (rank 1 of the group)",
               "simulation 0, step 2. Indices count along the joined parts of all ranks."],
    "block": ["Field 'xy' has the length 'nodes', which each sample has for itself, so its parts have no start",
              "Use mpidata_put: the parts of all ranks are joined in their order."],
    "shape": ["Field 'xy' has shape (nodes, 2), but (2, 3) was put", "only the dimension with a name may have another"],
    "not-put": ["Field 'u' was not put", "In each step put each field, by at least one rank", "simulation 0, step 2"],
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_with_lengths_fail_the_job(folder: JobFolder, mistake: str) -> None:
    folder.job(
        trainers=DRAIN,
        solvers={"ranks_per_group": 2, "program": python("solvers/mistakes/of_lengths.py", mistake)},
        fields=FIELDS,
        lengths={"nodes": {"at_most": 9}},
    )
    assert_failed(folder.run(timeout=30), *MISTAKES[mistake])


def test_strided_arrays_arrive(folder: JobFolder, compiled: Callable[[str], Path]) -> None:
    folder.write(
        train="from numpy_stream import stream\n"
        "for sample in stream():\n    print('=>', *(sample[name].tolist() for name in ('u', 'id', 'x', 'n')))\n"
    )
    folder.job(
        solvers={"program": [str(compiled("ghost_cells"))]},
        parameters={"count": 1, "space": {"alpha": [0.0, 1.0]}},
        fields={"u": {"shape": [4, 6]}, "id": {"shape": [5], "dtype": "int32"}, "x": {"shape": ["n"]}},
    )
    result = folder.run()
    assert result.status == 0, result.logs()
    inside = [[float(10 * j + i) for i in range(1, 7)] for j in range(1, 5)]
    assert result.marked() == [f"{inside} [4, 3, 2, 1, 0] [0.0, 1.0, 2.0] 3"]


@pytest.mark.parametrize(
    ("policy", "steps"),
    [
        ("firo", 2500),
        pytest.param("reservoir", 2500, marks=pytest.mark.full),
        pytest.param("firo", 125_000, marks=[pytest.mark.full, pytest.mark.timeout(400)]),
    ],
)
def test_memory_of_a_trainer_matches_the_size_of_its_samples(folder: JobFolder, policy: str, steps: int) -> None:
    """Memory does not grow to what the longest samples would take, however many have come and gone."""
    simulations, capacity = 8, 2000
    folder.variables = {"STEPS": str(steps)}
    folder.job(
        trainers={"program": python("trainers/checks/memory_of_lengths.py")},
        solvers={"groups": 2, "function": "functions.uneven_rows:simulate"},
        parameters={"count": simulations, "space": {"alpha": [0.0, 1.0]}},
        fields={"rows": {"shape": ["n", 5]}},
        buffer={"policy": policy, "capacity": capacity, "watermark": capacity - 64},
    )
    result = folder.run(timeout=300)
    assert result.status == 0, result.logs()
    assert result.summary["samples"]["received"] == simulations * steps
    before, after = (int(line.split()[-1]) for line in result.marked())
    held = capacity * 3000.5 * 20 / 1e6
    print(f"{steps * simulations} samples: {after - before} MB for {held:.0f} MB of samples")
    assert 0.5 * held < after - before < 1.25 * held + 64


@pytest.mark.parametrize("carriers", [pytest.param(1, marks=pytest.mark.full), 2])
def test_parts_of_a_carried_program_are_in_the_order_of_its_ranks(folder: JobFolder, carriers: int) -> None:
    folder.write(
        train="from numpy_stream import stream\nfor sample in stream():\n    print('=>', sample['t'].tolist())\n"
    )
    folder.job(
        solvers={
            "program": python("solvers/python/puts_own_rank.py"), "carried": {"ranks": 4}, "ranks_per_group": carriers
        },
        parameters={"count": 2, "space": {"alpha": [0.0, 1.0]}},
        fields={"t": {"shape": ["n"]}},
        lengths={"n": {"at_most": 10}},
    )  # fmt: skip
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.marked() == [str([0.0] + 2 * [1.0] + 3 * [2.0] + 4 * [3.0])] * 6


@pytest.mark.full
def test_parts_of_ranks_with_unknown_numbers_are_refused(folder: JobFolder) -> None:
    """Their launcher belongs to no MPI and no batch system."""
    folder.write(
        solve="import mpidata\n"
        "for simulation in mpidata.solver.simulations():\n"
        "    simulation.put(t=[1.0])\n    simulation.step(0.0)\n"
    )
    launcher = ["sh", "-c", '"$@" & "$@"; wait', "sh"]
    folder.job(
        trainers=DRAIN,
        solvers={"program": ["python", "solve.py"], "carried": {"ranks": 2, "launcher": launcher}},
        fields={"t": {"shape": ["n"]}},
        lengths={"n": {"at_most": 10}},
    )
    result = folder.run(timeout=60)
    assert result.status == 1 and "which is not known: their launcher sets none of" in result.output, result.logs()
