"""Checkpoints: writing the whole state of a job to disk, and restoring it.

Importing this package loads neither h5py nor torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mpidata.checkpoint.files import newest_valid, numbers, path_of, read_scheduler, remove_unfinished

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["newest_valid", "numbers", "path_of", "read_scheduler", "received", "remove_unfinished"]


def received(checkpoint: Path) -> NDArray[np.int64]:
    """Find the simulations of which the trainers of a checkpoint hold every step that they must expect.

    Parameters
    ----------
    checkpoint : Path
        Its folder.

    Returns
    -------
    ndarray, int64, shape (simulations + validation,)
        Number of steps of each such simulation; -1 for the others, which must run again.

    Raises
    ------
    StreamError
        A trainer's file cannot be read.

    Notes
    -----
    Loads h5py.
    """
    from mpidata.checkpoint.ledgers import complete_steps
    from mpidata.checkpoint.restore import open_all

    with open_all(checkpoint) as files:
        return complete_steps([file.ledger for file in files], files[0].head.by_step, files[0].head.span)
