"""The placeholder of a dataset that is built on the loaders."""

from __future__ import annotations

from typing import Any

from mpidata.datasets.data_loader.remote_dataset import Remote
from mpidata.errors import StreamError

__all__ = ["DatasetPlaceholder"]

_SLICE_S = 0.2


class DatasetPlaceholder:
    """Placeholder of a dataset that is built on the loaders.

    Parameters
    ----------
    remote : Remote
        The dataset on the loaders.
    """

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    def __len__(self) -> int:
        """Return the length; waits until a loader has sent it."""
        while (length := self._remote.length(_SLICE_S)) is None:
            pass
        return length

    def __getitem__(self, index: Any) -> Any:
        """Raise StreamError: samples are on the loaders only."""
        raise StreamError(
            "This dataset is on the loaders only: iterate over the DataLoader. accelerate.skip_first_batches cannot "
            "read it; resume in mid-epoch with the DataLoader's load_state_dict."
        )
