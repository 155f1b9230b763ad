"""Batches as graphs, as torch_geometric makes them of the single samples."""

import dataclasses
import subprocess
import sys
from typing import Any

import pytest
import torch
from alone_job import SIMULATIONS, STEPS, Samples, alone, begin, plan_of
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader
from torch_geometric.data import Batch, Data

import mpidata
from mpidata.errors import StreamError
from mpidata.run.plan import Field
from mpidata.trainer.dataset import MPIStreamDataset
from mpidata.trainer.standalone.sources import Sample

FIELDS = (
    Field("u", "float32", ("nodes",)),
    Field("xy", "float32", ("nodes", 2)),
    Field("flux", "float64", ("edges", 3)),
    Field("edge_index", "int64", (2, "edges"), "nodes"),
    Field("pairs", "int32", ("edges", 2), "nodes"),
    Field("wall", "int64", ("walls",), "nodes"),
    Field("drag", "float32", (2,), optional=True),
    Field("lift", "float32", ()),
    Field("cell", "float32", ("cells",)),
    Field("faces", "int64", ("walls", 3), "cells"),
    Field("beside", "float32", (2, "nodes")),
)
LEAST, MOST = {"nodes": 1, "edges": 0, "walls": 0, "cells": 1}, {"nodes": 9, "edges": 20, "walls": 4, "cells": 9}
ARGUMENTS: dict[str, Any] = {
    "x": ["u", "xy"], "edge_index": "edge_index", "pos": "xy", "edge_attr": "flux", "y": ["drag", "lift"], "z": "drag",
    "wall_index": "wall", "other_index": "pairs",
}  # fmt: skip


def samples() -> Samples:
    return Samples(plan_of(FIELDS), LEAST, MOST)


def graph_of(step: Sample) -> Data:
    """Return the graph of one sample, made by hand."""
    of = dict(zip((field.name for field in FIELDS), map(torch.from_numpy, step.fields), strict=True))
    return Data(
        x=torch.cat([of["u"].unsqueeze(1), of["xy"]], 1),
        edge_index=of["edge_index"],
        pos=of["xy"],
        edge_attr=of["flux"],
        y=torch.cat([of["drag"], of["lift"].reshape(1)]).unsqueeze(0),
        z=of["drag"].unsqueeze(0),
        wall_index=of["wall"],
        other_index=of["pairs"].t().contiguous(),
        simulation=torch.tensor([step.simulation]),
        step=torch.tensor([step.step]),
        time=torch.tensor([step.time], dtype=torch.float64),
        parameters=torch.from_numpy(step.parameters).unsqueeze(0),
        drag_given=torch.tensor([bool(step.numbers[4])]),
    )


def check_equal(one: Data, other: Data) -> None:
    assert sorted(one.keys()) == sorted(other.keys())
    for key in other.keys():
        assert one[key].dtype == other[key].dtype and torch.equal(one[key], other[key]), key


@pytest.mark.parametrize("constants", [(), ("xy", "edge_index", "pairs", "drag")], ids=["none", "constants"])
@alone
def test_graphs_equal_those_that_torch_geometric_makes_of_the_samples(constants: tuple[str, ...]) -> None:
    """Constants are included if they are requested."""
    fields = tuple(dataclasses.replace(field, per_simulation=field.name in constants) for field in FIELDS)
    given = Samples(plan_of(fields), LEAST, MOST)
    begin(given)
    stream = mpidata.graphs(MPIStreamDataset(4), **ARGUMENTS)
    count = 0
    for batch in DataLoader(stream, batch_size=None):
        count += 1
        steps = [given.of(*of) for of in zip(batch.simulation.tolist(), batch.step.tolist(), strict=True)]
        graphs = [graph_of(step) for step in steps]
        wanted = Batch.from_data_list(graphs)
        assert type(batch) is type(wanted)
        check_equal(batch, wanted)
        assert batch.num_graphs == 4 and batch.num_nodes == wanted.num_nodes
        for one, other in zip(batch.to_data_list(), graphs, strict=True):
            check_equal(one, other)
        check_equal(batch[2], graphs[2])
        assert batch._slice_dict.keys() == wanted._slice_dict.keys()
        for name, slices in wanted._slice_dict.items():
            assert torch.equal(batch._slice_dict[name], slices), name
            assert torch.equal(batch._inc_dict[name], wanted._inc_dict[name].reshape(-1)), name
        check_equal(Batch.from_data_list(batch.to_data_list()), wanted)
    assert count == SIMULATIONS * STEPS // 4


@alone
def test_a_stream_makes_graphs_of_several_kinds() -> None:
    """Each kind has the constants that it requests."""
    fields = tuple(
        dataclasses.replace(field, per_simulation=field.name in ("xy", "flux", "edge_index")) for field in FIELDS
    )
    begin(Samples(plan_of(fields), LEAST, MOST))
    stream = MPIStreamDataset(4)
    first = mpidata.graphs(stream, x="u", edge_index="edge_index", pos="xy")
    second = mpidata.graphs(stream, x="u", edge_index="edge_index", edge_attr="flux")
    assert next(iter(first)).pos.shape[1] == 2 and next(iter(second)).edge_attr.shape[1] == 3


@alone
def test_validation_samples_become_graphs() -> None:
    given = samples()
    begin(given)
    stream = MPIStreamDataset(4)
    graphs, validation = mpidata.graphs(stream, **ARGUMENTS), stream.validation()
    for sample in (validation[i] for i in range(len(validation))):
        check_equal(graphs.data(sample), graph_of(given.of(int(sample["simulation"]), int(sample["step"]))))


@alone
def test_graph_convolution_accepts_a_batch() -> None:
    from torch_geometric.nn import GCNConv, global_mean_pool

    begin(samples())
    batch = next(iter(mpidata.graphs(MPIStreamDataset(4), **ARGUMENTS)))
    assert global_mean_pool(GCNConv(3, 5)(batch.x, batch.edge_index), batch.batch, batch.num_graphs).shape == (4, 5)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"x": "velocity"}, "x='velocity' is not a field of the job. The fields are u, xy, flux"),
        ({"x": "drag"}, "x='drag' has no length 'nodes', along which edge_index='edge_index' counts"),
        ({"x": "flux"}, "x='flux' has no length 'nodes'"),
        ({"x": ["u", "flux"]}, "x consists of columns, so its fields need the same length and dtype"),
        ({"x": []}, "They are: none."),
        ({"edge_index": "u"}, "edge_index='u' has shape [nodes] and index null"),
        ({"edge_index": "wall"}, "edge_index='wall' has shape [walls]"),
        ({"pos": "wall"}, "pos='wall' has numbers of 'nodes', which torch_geometric shifts only if"),
        ({"pos": "beside"}, "the shape of a field must begin with its length, 'nodes'"),
        ({"a_index": "u"}, "a_index='u' has no index: nodes in the job file"),
        ({"face": "faces"}, "face='faces' counts along 'cells', and edge_index along 'nodes'"),
        ({"ptr": "u"}, "the attribute name 'ptr' is reserved"),
        ({"my_batch": "u"}, "the attribute name 'my_batch' is reserved"),
        ({"drag_given": "u"}, "the attribute name 'drag_given' is reserved"),
    ],
)
@alone
def test_invalid_graph_arguments_are_refused(changes: dict[str, Any], sentence: str) -> None:
    begin(samples())
    with pytest.raises(StreamError) as caught:
        mpidata.graphs(MPIStreamDataset(4), **(ARGUMENTS | changes))
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "window", "sentence"),
    [
        ({"batch_size": None}, 1, "the stream yields single samples. Give batch_size"),
        ({"batch_size": 4, "ragged": "padded"}, 1, "the stream has ragged='padded'"),
        ({"batch_size": 4}, 2, "samples.window is 2 in the job file"),
    ],
)
@alone
def test_streams_unsuitable_for_graphs_are_refused(arguments: dict[str, Any], window: int, sentence: str) -> None:
    begin(Samples(plan_of(FIELDS, samples_window=window), LEAST, MOST))
    with pytest.raises(StreamError) as caught:
        mpidata.graphs(MPIStreamDataset(**arguments), **ARGUMENTS)
    assert sentence in str(caught.value)


def test_dataloader_in_place_of_a_stream_is_refused() -> None:
    with pytest.raises(StreamError, match="DataLoader is not an MPIStreamDataset. Give the stream itself"):
        mpidata.graphs(DataLoader([1]), x="u", edge_index="e")


@alone
def test_only_graphs_imports_torch_geometric_and_reports_it_if_missing() -> None:
    begin(samples())
    sys.modules["torch_geometric.data"] = None  # as if it were not installed
    with pytest.raises(StreamError, match=r"needs torch_geometric.*pip install 'mpidata\[graphs\]'"):
        mpidata.graphs(MPIStreamDataset(4), **ARGUMENTS)
    code = "import sys, mpidata.trainer.batches.graphs; sys.exit('torch_geometric' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


class Outputs(TorchDispatchMode):
    """Records the bytes of each storage that an operation of torch allocates."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[int] = []

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        given = {_storage(of) for of in tree_leaves((arguments, named)) if isinstance(of, torch.Tensor)}
        result = operation(*arguments, **(named or {}))
        self.made += [
            of.untyped_storage().nbytes()
            for of in tree_leaves(result)
            if isinstance(of, torch.Tensor) and _storage(of) not in given
        ]
        return result


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


@alone
def test_copying_into_graph_batches_allocates_no_memory() -> None:
    """This covers columns side by side, transposed indices and the numbers of the graphs."""
    from mpidata.trainer.batches import pool

    nodes, count = 3000, 4
    fields = tuple(dataclasses.replace(field, optional=False) for field in FIELDS)
    begin(Samples(plan_of(fields), dict.fromkeys(LEAST, nodes), dict.fromkeys(LEAST, nodes)))
    stream, blocks, new_block = iter(mpidata.graphs(MPIStreamDataset(count), **ARGUMENTS)), [], pool._new_block
    kept = [next(stream) for _ in range(3)]  # two are in use while the next is made
    pool._new_block = lambda size: blocks.append(size) or new_block(size)
    with Outputs() as outputs:
        for _ in range(8):
            del kept[0]
            kept.append(next(stream))
    assert not blocks and outputs.made
    assert max(outputs.made) <= 8 * (count + 1)
