"""All contenders of the stream benchmark, in the order of the tables, and the other benchmarks."""

from __future__ import annotations

import importlib

from benchmarks import (
    batches,
    dispatching,
    edges,
    failure,
    growth,
    inference,
    loaders,
    meshes,
    producers,
    publishing,
    ranks,
    rows,
    scheduling,
    training,
)
from benchmarks.cases import Benchmark
from benchmarks.contender import Contender

__all__ = ["benchmarks", "contenders"]

_MODULES = [
    "mpidata_stream",
    "hand_written",
    "zeromq_pickle",
    "zeromq_raw",
    "adios_sst",
    "rpc_dataloader",
    "redis_store",
    "hdf5_files",
]


def benchmarks() -> list[Benchmark]:
    """The benchmarks beside the stream's, quick ones first."""
    return [
        scheduling,
        dispatching,
        failure,
        meshes,
        producers,
        publishing,
        inference,
        batches,
        rows,
        loaders,
        edges,
        training,
        growth,
        ranks,
    ]


def contenders() -> list[Contender]:
    """All contenders, whether or not they can be run here."""
    return [
        contender
        for module in _MODULES
        for contender in importlib.import_module(f"benchmarks.contenders.{module}").CONTENDERS
    ]
