"""Settings of malloc in a loader's process."""

from __future__ import annotations

import ctypes
import gc

__all__ = ["give_back_freed", "keep_freed"]

# Of <malloc.h>; the last one is the largest that glibc accepts.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_NEVER, _GREATEST = 2**31 - 1, 32 << 20


def keep_freed() -> None:
    """Make glibc keep freed blocks of up to 32 MiB for later batches, because new pages cost as much as a copy."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # other C libraries have none
        mallopt(_TRIM_THRESHOLD, _NEVER)
        mallopt(_MMAP_THRESHOLD, _GREATEST)


def give_back_freed() -> None:
    """Return free memory to the system, including that of unreachable reference cycles."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
