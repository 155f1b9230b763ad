"""Stream a running ensemble of MPI simulations into PyTorch training.

In the training script: `MPIStreamDataset`, `DataLoader`, `FileDataset`, `Normalizer`, `PackedCollate`, `graphs`,
`register`, `report`, `picture`, `publish`, `replica`, `init_process_group`, `in_job` and `StreamError`.
In a solver written in Python: `mpidata.solver`; in a function of `solvers.function`: `Constants` and `GiveUp`.
Importing this package neither initializes MPI nor imports torch; the names below are loaded at their first use.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import mpidata.solver as solver
    from mpidata.datasets.data_loader.data_loader import DataLoader
    from mpidata.datasets.files.dataset import FileDataset
    from mpidata.errors import GiveUp, StreamError
    from mpidata.packing import PackedCollate
    from mpidata.record.dataset import RecordedDataset
    from mpidata.run.job_environment import in_job
    from mpidata.solver.constants import Constants
    from mpidata.trainer.batches.graphs import graphs
    from mpidata.trainer.dataset import MPIStreamDataset
    from mpidata.trainer.elastic.calls import all_reduce, on_change, rank, world_size
    from mpidata.trainer.elastic.data_parallel import DistributedDataParallel
    from mpidata.trainer.field_statistics.normalizer import Normalizer
    from mpidata.trainer.local_sgd.local_sgd import LocalSGD
    from mpidata.trainer.process_group import init_process_group
    from mpidata.trainer.published.publish import publish
    from mpidata.trainer.script import picture, register, replica, report
    from mpidata.trainer.served.embedding import ServedEmbedding
    from mpidata.trainer.served.parameter_server import ParameterServer

__all__ = [
    "Constants",
    "DataLoader",
    "DistributedDataParallel",
    "FileDataset",
    "GiveUp",
    "LocalSGD",
    "MPIStreamDataset",
    "Normalizer",
    "PackedCollate",
    "ParameterServer",
    "RecordedDataset",
    "ServedEmbedding",
    "StreamError",
    "__version__",
    "all_reduce",
    "graphs",
    "in_job",
    "init_process_group",
    "on_change",
    "picture",
    "publish",
    "rank",
    "register",
    "replica",
    "report",
    "solver",
    "world_size",
]

__version__ = "0.2.0"

_HOME = {
    "Constants": "mpidata.solver.constants",
    "DataLoader": "mpidata.datasets.data_loader.data_loader",
    "DistributedDataParallel": "mpidata.trainer.elastic.data_parallel",
    "FileDataset": "mpidata.datasets.files.dataset",
    "GiveUp": "mpidata.errors",
    "LocalSGD": "mpidata.trainer.local_sgd.local_sgd",
    "MPIStreamDataset": "mpidata.trainer.dataset",
    "Normalizer": "mpidata.trainer.field_statistics.normalizer",
    "PackedCollate": "mpidata.packing",
    "ParameterServer": "mpidata.trainer.served.parameter_server",
    "RecordedDataset": "mpidata.record.dataset",
    "ServedEmbedding": "mpidata.trainer.served.embedding",
    "StreamError": "mpidata.errors",
    "all_reduce": "mpidata.trainer.elastic.calls",
    "graphs": "mpidata.trainer.batches.graphs",
    "in_job": "mpidata.run.job_environment",
    "init_process_group": "mpidata.trainer.process_group",
    "on_change": "mpidata.trainer.elastic.calls",
    "picture": "mpidata.trainer.script",
    "publish": "mpidata.trainer.published.publish",
    "rank": "mpidata.trainer.elastic.calls",
    "register": "mpidata.trainer.script",
    "replica": "mpidata.trainer.script",
    "report": "mpidata.trainer.script",
    "world_size": "mpidata.trainer.elastic.calls",
}

# The module names of classes in pickles of earlier versions, for example in checkpoints.
for _module in (
    *("data_loader", "data_loader.data_loader", "files", "files.dataset"),
    *("field_statistics", "field_statistics.normalizer"),
):
    sys.modules[f"{__name__}.{_module}"] = sys.modules[__name__]


def __getattr__(name: str) -> Any:
    if name == "solver":
        return importlib.import_module("mpidata.solver")
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'mpidata' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
