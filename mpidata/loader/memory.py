"""How a loader's process keeps memory."""

from __future__ import annotations

import ctypes

__all__ = ["keep_freed"]

# Of <malloc.h>; the last one is the greatest that glibc takes.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_NEVER, _GREATEST = 2**31 - 1, 32 << 20


def keep_freed() -> None:
    """Have glibc keep freed blocks of up to 32 MiB: batches come and go, and fresh pages cost as much as a copy."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # other C libraries have none
        mallopt(_TRIM_THRESHOLD, _NEVER)
        mallopt(_MMAP_THRESHOLD, _GREATEST)
