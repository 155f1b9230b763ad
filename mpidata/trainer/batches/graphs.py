"""Packed batches as torch_geometric batches."""

from __future__ import annotations

import dataclasses
import importlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils.data import IterableDataset

from mpidata.errors import StreamError
from mpidata.run.plan import Field
from mpidata.tensors import WEIGHT
from mpidata.trainer.batches.packed import Entry, make_tensors
from mpidata.trainer.batches.pool import MemoryPool
from mpidata.trainer.dataset import MPIStreamDataset

__all__ = ["Graphs", "graphs"]

_OF_SAMPLES = ("simulation", "step", "time", "parameters")


def graphs(
    stream: MPIStreamDataset,
    x: str | Sequence[str],
    edge_index: str,
    pos: str | Sequence[str] | None = None,
    edge_attr: str | Sequence[str] | None = None,
    y: str | Sequence[str] | None = None,
    **others: str | Sequence[str],
) -> Graphs:
    """Return the stream's batches as graphs: an iterable dataset of `torch_geometric.data.Batch`.

    Parameters
    ----------
    stream : MPIStreamDataset
        A stream with a `batch_size`, packed, without windows.
    x : str or sequence of str
        Fields of the nodes, shape ``[nodes]`` (one column) or ``[nodes, k]`` (k columns). They become the columns of
        ``x``, ``[nodes, features]``.
    edge_index : str
        Field ``[2, edges]`` or ``[edges, 2]`` with ``index: nodes``.
    pos, edge_attr, y, **others : str or sequence of str, optional
        For each attribute, one field unchanged, or several as columns. A field without a length belongs to the graph:
        ``[B, *shape]`` in a batch, ``[1, *shape]`` in a graph.

    Returns
    -------
    Graphs
        An iterable dataset; use it directly, or in a DataLoader with ``batch_size=None``.

    Raises
    ------
    StreamError
        torch_geometric is not installed, or a field or the stream does not fit; the message states why.

    Notes
    -----
    A batch also has ``batch``, ``ptr``, and for each graph ``simulation``, ``step``, ``time``, ``parameters``, and
    ``<field>_given`` of optional fields. Fields with ``per: simulation`` are copied into batches if they are named.
    ``to_data_list()`` returns the graphs of its samples. The tensors are those of the packed batch. Only columns and
    transposed indices are copied, into memory that is reused when no tensor refers to it. torch_geometric treats
    attributes named ``face``, and those whose name contains ``index``, as node numbers. Therefore fields with
    ``index: nodes`` need such a name, and no other field may have one.
    """
    _check_stream(stream)
    given = {
        "x": [x] if isinstance(x, str) else x,
        "edge_index": edge_index,
        "pos": pos,
        "edge_attr": edge_attr,
        "y": y,
    }
    fields = stream.fields
    nodes = _nodes_of(fields, edge_index)
    attributes = [_attribute(fields, nodes, name, of) for name, of in (given | others).items() if of is not None]
    if attributes[0].length != nodes:
        raise StreamError(
            f"graphs: x={x!r} has no length {nodes!r}, along which edge_index={edge_index!r} counts. Name fields that "
            "have it."
        )
    return Graphs(stream, nodes, attributes)


class Graphs(IterableDataset[Any]):
    """Iterable dataset of `torch_geometric.data.Batch`; `mpidata.graphs` returns it."""

    def __init__(self, stream: MPIStreamDataset, nodes: str, attributes: Sequence[_Attribute]) -> None:
        super().__init__()
        self._stream, self._nodes, self._attributes = stream, nodes, attributes
        self._of_graphs = (*_OF_SAMPLES, *_given(stream.fields), *_weight(stream))
        self._batch = _torch_geometric().Batch
        self._pool, self._pinned = MemoryPool(), stream._pinned
        stream._gather([name for attribute in attributes for name in attribute.fields])

    def data(self, sample: Mapping[str, torch.Tensor]) -> Any:
        """Return a single sample, for example of `MPIStreamDataset.validation`, as a `torch_geometric.data.Data`."""
        fields = self._stream.fields
        packed = {
            name: value if name in fields and fields[name].length else value.unsqueeze(0)
            for name, value in sample.items()
        }
        for length in {field.length for field in fields.values() if field.length}:
            packed[f"{length}_offsets"] = torch.tensor([0, int(sample[length])], device="cpu")
        return self._graph(packed)[0]

    def __iter__(self) -> Iterator[Any]:
        """Start a pass over the stream, as its own `__iter__` does."""
        return map(self._graph, iter(self._stream))  # holds no batch

    def _graph(self, packed: Mapping[str, torch.Tensor]) -> Any:
        """Make the batch that torch_geometric's collate would make of the samples."""
        ptr = packed[f"{self._nodes}_offsets"]
        count = len(ptr) - 1
        each, none = torch.arange(count + 1, device="cpu"), torch.zeros(count, dtype=torch.int64, device="cpu")
        graph, slices, increments = self._batch(), {}, {}
        joined = self._joined(packed)
        for attribute in self._attributes:
            graph[attribute.name] = joined[attribute.name]
            slices[attribute.name] = packed[f"{attribute.length}_offsets"] if attribute.length else each
            increments[attribute.name] = ptr[:-1] if attribute.counts_nodes else none
        for name in self._of_graphs:
            graph[name], slices[name], increments[name] = packed[name], each, none
        graph.batch, graph.ptr = joined["batch"], ptr
        graph._num_graphs, graph._slice_dict, graph._inc_dict = count, slices, increments
        return graph

    def _joined(self, packed: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Make the tensors of the attributes and `batch`, the graph of each node; copies use memory that is reused."""
        parts = {attribute.name: attribute.parts(packed) for attribute in self._attributes}
        joined = {name: of[0] for name, of in parts.items() if len(of) == 1 and of[0].is_contiguous()}
        entries: list[Entry] = [
            (of.name, (len(parts[of.name][0]), sum(part.shape[1] for part in parts[of.name])), of.dtype)
            for of in self._attributes
            if of.name not in joined
        ]
        ptr = packed[f"{self._nodes}_offsets"].tolist()
        copied, _ = make_tensors(self._pool, [*entries, ("batch", (ptr[-1],), "int64")], pinned=self._pinned)
        for name, *_ in entries:
            torch.cat(parts[name], 1, out=copied[name])
        for number, (begin, end) in enumerate(itertools.pairwise(ptr)):
            copied["batch"][begin:end] = number
        return joined | copied


@dataclasses.dataclass(frozen=True)
class _Attribute:
    """An attribute of the graphs: its fields and their length; an empty length means one value for each graph."""

    name: str
    fields: tuple[str, ...]
    dtype: str
    length: str
    columns: bool
    counts_nodes: bool
    transposed: bool

    def parts(self, packed: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Return views of the parts that are joined, side by side, into its tensor."""
        tensors = [packed[name] for name in self.fields]
        if self.columns:
            return [tensor.unsqueeze(1) if tensor.ndim == 1 else tensor for tensor in tensors]
        return [tensors[0].t()] if self.transposed else tensors


def _torch_geometric() -> Any:
    try:
        return importlib.import_module("torch_geometric.data")
    except ModuleNotFoundError as error:
        raise StreamError(
            f"mpidata.graphs needs torch_geometric, and there is no module {error.name!r}. "
            "Install it with pip install 'mpidata[graphs]'."
        ) from None


def _check_stream(stream: Any) -> None:
    if not isinstance(stream, MPIStreamDataset):
        raise StreamError(f"graphs: {type(stream).__name__} is not an MPIStreamDataset. Give the stream itself.")
    if stream.batch_size is None and stream.global_batch_size is None:
        raise StreamError("graphs: the stream yields single samples. Give batch_size to MPIStreamDataset.")
    if stream.ragged != "packed":
        raise StreamError(
            f"graphs: the stream has ragged={stream.ragged!r}. Leave it out: graphs are made of packed batches."
        )
    if stream._device is not None:
        raise StreamError(
            "graphs: the batches of the stream go to a device, and graphs are made in CPU memory. Leave device out of "
            "MPIStreamDataset, and move each graph: graph.to(device, non_blocking=True)."
        )
    window = stream._trainer.plan.samples_window
    if window > 1:
        raise StreamError(f"graphs: samples.window is {window} in the job file, and a graph is one step. Remove it.")


def _nodes_of(fields: Mapping[str, Field], name: str) -> str:
    """Return the length along which the edges count."""
    field = _field(fields, "edge_index", name)
    if not field.index or len(field.shape) != 2 or 2 not in field.shape or not field.length:
        raise StreamError(
            f"graphs: edge_index={name!r} has shape {_shown(field)} and index {field.index or 'null'} in the job file. "
            "It needs shape [2, edges] or [edges, 2], and as index the length of the nodes."
        )
    return field.index


def _attribute(fields: Mapping[str, Field], nodes: str, name: str, given: str | Sequence[str]) -> _Attribute:
    """Check that torch_geometric will treat the attribute correctly, by Data.__cat_dim__ and Data.__inc__."""
    taken = (*_OF_SAMPLES, *_given(fields), WEIGHT, "ptr", "num_nodes")
    if name in taken or "batch" in name:
        raise StreamError(f"graphs: the attribute name {name!r} is reserved in a batch. Choose another name.")
    counts_nodes = "index" in name or name == "face"
    columns = not isinstance(given, str)
    names = (given,) if isinstance(given, str) else tuple(given)
    found = [_field(fields, name, of) for of in names]
    if columns:
        _check_columns(name, found)
    length = found[0].length
    for field in found:
        if (field.index == nodes) != counts_nodes or (field.index and field.index != nodes):
            raise StreamError(_unlike_index(name, field, nodes))
    transposed = counts_nodes and len(found[0].shape) == 2 and found[0].shape[0] == length
    if length and not counts_nodes and any(field.shape[0] != length for field in found):
        raise StreamError(
            f"graphs: {name}={given!r}: the shape of a field must begin with its length, {length!r}, because "
            "torch_geometric joins graphs along the first dimension. Change the shape, and what the solver puts."
        )
    return _Attribute(name, names, found[0].dtype, length, columns, counts_nodes, transposed)


def _given(fields: Mapping[str, Field]) -> list[str]:
    return [f"{name}_given" for name, field in fields.items() if field.optional]


def _weight(stream: MPIStreamDataset) -> list[str]:
    return [WEIGHT] if stream._trainer.plan.weights else []


def _field(fields: Mapping[str, Field], attribute: str, name: str) -> Field:
    if name not in fields:
        raise StreamError(
            f"graphs: {attribute}={name!r} is not a field of the job. The fields are {', '.join(fields)}."
        )
    return fields[name]


def _check_columns(name: str, found: Sequence[Field]) -> None:
    """Raise StreamError unless the fields can be columns of one tensor."""
    shown = ", ".join(f"{field.name} {_shown(field)} {field.dtype}" for field in found)
    if not found or len({(field.length, field.dtype) for field in found}) > 1:
        raise StreamError(
            f"graphs: {name} consists of columns, so its fields need the same length and dtype. They are: "
            f"{shown or 'none'}."
        )
    most = 2 if found[0].length else 1
    if any(len(field.shape) > most for field in found):
        raise StreamError(
            f"graphs: {name} consists of columns, so a field has at most one dimension besides its length. They are: "
            f"{shown}."
        )


def _unlike_index(name: str, field: Field, nodes: str) -> str:
    if field.index and field.index != nodes:
        return (
            f"graphs: {name}={field.name!r} counts along {field.index!r}, and edge_index along {nodes!r}: "
            "torch_geometric shifts only node numbers. Leave the field out."
        )
    if field.index:
        return (
            f"graphs: {name}={field.name!r} has numbers of {nodes!r}, which torch_geometric shifts only if the "
            f"attribute's name contains 'index'. Name it {name}_index."
        )
    return (
        f"graphs: {name}={field.name!r} has no index: {nodes} in the job file, and torch_geometric treats attributes "
        "of this name as node numbers. Choose another name, or give the field an index."
    )


def _shown(field: Field) -> str:
    return f"[{', '.join(map(str, field.shape))}]"
