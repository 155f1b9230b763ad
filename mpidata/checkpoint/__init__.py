"""Checkpoints: the whole state of a job on disk, and the way back.

Importing this package loads neither h5py nor torch.
"""

from mpidata.checkpoint.files import newest_valid, numbers, path_of, read_scheduler, remove_unfinished

__all__ = ["newest_valid", "numbers", "path_of", "read_scheduler", "remove_unfinished"]
