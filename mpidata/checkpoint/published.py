"""Published arrays in checkpoints and for a spare: in full on one trainer, on the others only the version."""

from __future__ import annotations

import ctypes
from collections.abc import MutableMapping

from mpidata.checkpoint.trainer_file import Saved
from mpidata.native.library import Library, check

__all__ = ["restore_published", "save_published"]

_NAME = "mpidata.published"  # not an identifier, so that no object of the script can have this name


def save_published(library: Library) -> dict[str, Saved]:
    """Copy the newest version; empty if nothing has been published."""
    memory, size, edition = ctypes.c_void_p(), ctypes.c_int64(), ctypes.c_int64()
    found = ctypes.byref(memory), ctypes.byref(size), ctypes.byref(edition)
    check(library, library.mpidata_trainer_published(*found))
    if not size.value or not memory.value:
        return {}
    try:
        return {_NAME: Saved(bytes((ctypes.c_uint8 * size.value).from_address(memory.value)))}
    finally:
        library.mpidata_trainer_published_release(edition.value)


def restore_published(library: Library, state: MutableMapping[str, Saved]) -> None:
    """Restore the version of a checkpoint, if it has one, and remove it from `state`."""
    saved = state.pop(_NAME, None)
    if saved is not None:
        contents = ctypes.create_string_buffer(saved.contents, len(saved.contents))
        check(library, library.mpidata_trainer_restore_published(contents, len(saved.contents)))
