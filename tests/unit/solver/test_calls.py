import sys

import numpy as np
import pytest
import torch
from fake_library import FakeLibrary, make_plan

from mpidata import solver
from mpidata.errors import LibraryError, MpidataError
from mpidata.native.constants import END
from mpidata.solver.group_rank import GroupRank, StopSimulation


@pytest.fixture
def library(monkeypatch):
    library = FakeLibrary()
    monkeypatch.setattr(solver, "_rank", GroupRank(library, None, library.plan, rank=3))
    return library


def test_simulations_are_yielded_until_none_remain(library):
    seen = [(simulation.id, dict(simulation.parameters)) for simulation in solver.simulations()]
    parameters = {"alpha": 0.25, "beta": 4.0}
    assert seen == [(8, parameters), (7, parameters)]
    assert library.calls == ["next", "next", "next", "finalize"]
    assert list(solver.simulations()) == []
    solver.finalize()
    assert library.calls.count("finalize") == 1


def test_finalize_after_one_simulation_leaves_the_job(library):
    next(solver.simulations())
    assert library.calls == ["next"]
    solver.finalize()
    assert library.calls == ["next", "finalize"]
    with pytest.raises(LibraryError, match="has left the job"):
        solver.group()


def test_loop_over_simulations_can_be_resumed(library):
    first = next(solver.simulations())
    assert [first.id, *(simulation.id for simulation in solver.simulations())] == [8, 7]


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.arange(6, dtype=np.float32).reshape(2, 3), "float32"),
        (np.arange(6.0).reshape(3, 2).T, "float64"),
        (np.arange(24, dtype=np.int32).reshape(4, 6)[::2, ::3], "int32"),
        (np.arange(6, dtype=">i8"), "int64"),
        (np.arange(6, dtype=">f4")[::-1], "float32"),
        (np.array(7, np.uint8), "uint8"),
        (np.array([True, False]), "bool"),
        (np.arange(3, dtype=">c8"), "complex64"),
        (torch.tensor([0, 1, 65535], dtype=torch.uint16), "uint16"),
        (np.ma.array([1.0, 2.0]), "float64"),
        (np.frombuffer(bytes(17), np.float64, offset=1), "float64"),
        (2.5, "float64"),
        ([1, 2, 3], "int64"),
    ],
)
def test_put_sends_values_in_c_order(library, value, dtype):
    next(solver.simulations()).put(temperature=value)
    ((field, sent, start),) = library.puts
    assert (field, sent.dtype.name, start) == ("temperature", dtype, None)
    assert sent.shape == np.shape(value)
    np.testing.assert_array_equal(sent, value)


def test_put_sends_several_fields(library):
    next(solver.simulations()).put(temperature=np.ones((2, 3)), scalar=3)
    assert [field for field, _, _ in library.puts] == ["temperature", "scalar"]


@pytest.mark.parametrize("value", [np.ones(2, np.longdouble), np.ones(2, "M8[s]"), np.ones(2, "V8"), "text"])
def test_dtype_that_cannot_be_sent_is_refused(library, value):
    simulation = next(solver.simulations())
    simulation.step(0.0)
    with pytest.raises(MpidataError) as caught:
        simulation.put(temperature=value)
    text = str(caught.value)
    assert text.startswith(f"Field 'temperature' has dtype float32, but {np.asarray(value).dtype} was put. Where. ")
    assert text.endswith("Convert it to float32 or float64.")


def test_values_that_are_not_numeric_are_refused(library):
    simulation = next(solver.simulations())
    for value, kind in (([[1, 2], [3]], "list"), (torch.ones(2).to_sparse(), "torch.Tensor"), (None, "NoneType")):
        with pytest.raises(LibraryError, match=f"^Field 'temperature': {kind} was put, which NumPy c"):
            simulation.put(temperature=value)
    with pytest.raises(LibraryError, match="^step: the time is 'now'. Where. Pass a number."):
        simulation.step("now")
    assert library.puts == [] and library.steps == []


def test_masked_elements_become_nan_or_are_refused(library):
    simulation = next(solver.simulations())
    simulation.put(temperature=np.ma.masked_greater([1.0, 9e36], 1e36))
    simulation.put(scalar=np.ma.array(3))
    assert [sent.tolist() for _, sent, _ in library.puts] == [pytest.approx([1, np.nan], nan_ok=True), 3]
    with pytest.raises(
        LibraryError, match="^Field 'scalar': .*MaskedArray was put, which has 1 masked elements, and int"
    ):
        simulation.put(scalar=np.ma.array(3, mask=True))
    with pytest.raises(LibraryError, match="Where. Give them a value, for example array.filled"):
        simulation.put_block("scalar", np.ma.array(3, mask=True), ())


def test_python_numbers_are_put_only_into_fields_that_can_store_them(library):
    simulation = next(solver.simulations())
    simulation.put(temperature=3, scalar=True)
    assert [(sent.dtype.name, sent.item()) for _, sent, _ in library.puts] == [("float64", 3.0), ("int64", 1)]
    with pytest.raises(
        LibraryError, match="^Field 'scalar': the int 9223372036854775808 was put, which int64 does not"
    ):
        simulation.put(scalar=1 << 63)


@pytest.mark.parametrize(
    "nothing",
    [[], [[]], np.array([]), np.zeros((0, 5)), np.zeros((5, 0), bool), np.array([], object), torch.ones(0, 3)],
)
def test_value_without_elements_is_put_as_an_empty_block(library, nothing):
    simulation = next(solver.simulations())
    for call in (
        lambda: simulation.put_block("temperature", nothing, (9,)),
        lambda: simulation.iput("temperature", nothing, (0, 0)),
        lambda: simulation.put(temperature=nothing),  # the other rank of the group has it
    ):
        call()
        ((field, sent, start),) = library.puts
        assert (field, sent.shape, sent.dtype.name, start) == ("temperature", (0, 0), "float32", (0, 0))
        library.puts.clear()
    simulation.put_block("scalar", nothing, ())
    assert library.puts == []
    with pytest.raises(LibraryError, match="The sentence"):
        simulation.put_block("unknown", nothing, (0,))


def test_empty_array_of_the_only_rank_is_put_with_its_own_shape(monkeypatch):
    library = FakeLibrary(make_plan(ranks_per_group=1))
    monkeypatch.setattr(solver, "_rank", GroupRank(library, None, library.plan, rank=2))
    next(solver.simulations()).put(temperature=np.array([], bool))
    ((_, sent, start),) = library.puts
    assert (sent.shape, sent.dtype.name, start) == ((0,), "float32", None)


def test_undeclared_field_is_refused_by_the_library(library):
    for call in (
        lambda simulation: simulation.put(unknown=np.ones(2, bool)),
        lambda simulation: simulation.put_block("unknown", None, (0,)),
    ):
        with pytest.raises(LibraryError, match="The sentence"):
            call(next(solver.simulations()))
    assert [field for field, _, _ in library.puts] == ["unknown"] * 2


def test_place_of_a_spawned_rank_names_its_spawned_group(library):
    rank = GroupRank(library, None, library.plan, rank=9, spawned=True)
    assert rank.place() == "Solver rank 9 of a spawned group, outside a simulation"


def test_put_block_sends_the_block_and_checks_its_start(library):
    simulation = next(solver.simulations())
    simulation.put_block("temperature", np.arange(12.0).reshape(2, 6)[:, ::2], start=(0, 32))
    ((field, sent, start),) = library.puts
    assert (field, sent.tolist(), start) == ("temperature", [[0, 2, 4], [6, 8, 10]], (0, 32))
    for start in (0,), (0, 0.5), 3, ("a", "b"):
        with pytest.raises(LibraryError, match="^Field 'temperature': the block has 2 dimensions but start is "):
            simulation.put_block("temperature", np.ones((2, 2)), start=start)


def test_wait_for_one_array_releases_only_that_array(library):
    simulation = next(solver.simulations())
    array, other = np.ones((2, 3)), np.ones((2, 3))
    before = sys.getrefcount(array)
    simulation.iput("temperature", array)
    simulation.iput("temperature", other)
    simulation.step(0.0)
    simulation.wait(array)
    assert sys.getrefcount(array) == before and sys.getrefcount(other) > before
    assert library.calls == ["next", "wait_for"]


def test_iput_keeps_the_array_until_wait(library):
    simulation = next(solver.simulations())
    rank = solver._rank
    array = np.ones((2, 3))
    before = sys.getrefcount(array)
    simulation.iput("temperature", array)
    held = sys.getrefcount(array)
    assert held > before
    simulation.wait()
    assert sys.getrefcount(array) == held  # its sample is not committed
    simulation.step(0.0)
    simulation.wait()
    assert sys.getrefcount(array) == before
    simulation.iput("temperature", array, start=(1, 2))
    simulation.step(1.0)
    rank.next()
    assert library.puts[-1][2] == (1, 2)
    assert library.calls == ["next", "wait", "wait", "wait", "next"]


def test_misuse_raises_the_message_of_the_library(library):
    with pytest.raises(LibraryError, match="The sentence. Where. What to do."):
        next(solver.simulations()).put(unknown=1.0)


def test_a_field_may_be_called_self(library):
    next(solver.simulations()).put(**{"self": 1.0})
    assert library.puts[-1][0] == "self"


def test_end_of_the_job_exits_all_loops(library):
    library.end_at_step = 1
    with pytest.raises(StopSimulation):
        for simulation in solver.simulations():
            for step in range(5):
                simulation.step(step)
    assert library.steps == [0.0]
    assert issubclass(StopSimulation, SystemExit) and not issubclass(StopSimulation, Exception)


def test_fail_sends_the_reason_and_raises_at_the_end_of_the_job(library):
    next(solver.simulations()).fail("it diverged")
    assert library.calls[-1] == ("fail", "it diverged")
    library.mpidata_fail = lambda reason: END
    with pytest.raises(StopSimulation):
        next(solver.simulations()).fail("it diverged")


@pytest.mark.parametrize("call", [lambda it: it.put(u=1.0), lambda it: it.step(0.0), lambda it: it.fail("x")])
def test_use_of_an_ended_simulation_is_refused(library, call):
    simulations = solver.simulations()
    first, second = next(simulations), next(simulations)
    calls = list(library.calls)
    with pytest.raises(MpidataError, match=f"Simulation {first.id} has ended, and its object was used again"):
        call(first)
    assert second.id != first.id and library.calls[len(calls) :] in ([], ["misuse"])
