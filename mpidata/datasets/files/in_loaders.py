"""A FileDataset within a DataLoader of torch, or of a framework that wraps one."""

from __future__ import annotations

from typing import NoReturn

from torch.utils.data import get_worker_info

from mpidata.errors import StreamError
from mpidata.trainer.frameworks.callers import callers

__all__ = ["refuse_copy", "refuse_loader"]


def refuse_loader(batch_size: int, dealt: bool) -> None:
    """Raise StreamError if the caller that starts a pass does not suit a FileDataset; for its `__iter__`.

    Parameters
    ----------
    batch_size : int
        Of the dataset.
    dealt : bool
        Whether each trainer has its own batches.
    """
    if (info := get_worker_info()) is not None:
        raise StreamError(
            f"num_workers={info.num_workers} does not work with FileDataset: a DataLoader's workers are forked "
            "processes, and MPI does not survive a fork. Use num_workers=0: the job's loaders already read in the "
            "background."
        )
    for caller in callers():
        kind = type(caller).__name__
        if kind == "_IterableDatasetFetcher" and caller.auto_collation:
            raise StreamError(
                f"A DataLoader with a batch_size around FileDataset(batch_size={batch_size}) would make batches of "
                "batches. Use DataLoader(dataset, batch_size=None), or iterate over the FileDataset itself."
            )
        if kind == "DataLoaderDispatcher" and dealt:
            raise StreamError(
                "accelerator.prepare(DataLoader(FileDataset)) divides the batches of one trainer among all, but each "
                "trainer has its own batches. Give DataLoaderConfiguration(dispatch_batches=False) to the "
                "Accelerator, or iterate over the FileDataset without a DataLoader."
            )


def refuse_copy() -> NoReturn:
    """Refuse to pickle a FileDataset, as a DataLoader does for workers that it does not fork."""
    raise StreamError(
        "A FileDataset cannot be pickled or copied, because only this process can reach the job's loaders. Create "
        "another FileDataset; in a DataLoader use num_workers=0."
    )
