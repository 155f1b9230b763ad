"""What libmpidata declares: the functions and structures of mpidata.h, of the trainers, the loaders and the scheduler.

Calls release the GIL, so a call that waits does not stop other threads.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Literal, Protocol, get_args

from mpidata.errors import LibraryError, RankDiedError

__all__ = [
    "AGAIN",
    "CARRIED",
    "CHECKPOINT",
    "DTYPES",
    "Dtype",
    "END",
    "ERR_ARGUMENT",
    "ERR_DTYPE",
    "SUCCESS",
    "Library",
    "RecordFigures",
    "Snapshot",
    "Statistics",
    "Taken",
    "check",
    "SIGNATURES",
]

SUCCESS = 0
END = 1
ERR_ARGUMENT = 3
ERR_DTYPE = 6
AGAIN = 13
DIED = 15
CHECKPOINT = 14

Dtype = Literal["float32", "float64", "int32", "int64", "uint8"]
"""`mpidata_dtype` in its order, under NumPy's names."""

DTYPES = {name: number for number, name in enumerate(get_args(Dtype), start=1)}


class Statistics(ctypes.Structure):
    """`mpidata_statistics` of statistics.h."""

    _fields_ = [
        ("received", c_int64),
        ("validation", c_int64),
        ("duplicates", c_int64),
        ("drawn", c_int64),
        ("fill", c_int64),
        ("capacity", c_int64),
        ("bytes", c_int64),
        ("windows", c_int64),
    ]


class Snapshot(ctypes.Structure):
    """`mpidata_snapshot` of snapshot.h; `count` is indexed by the constants of this class."""

    BUFFER, WAITING, RETIRED, VALIDATION, NONE = range(5)

    _fields_ = [
        ("number", c_int64),
        ("batch", c_int64),
        ("batches_of_all", c_int64),
        ("count", c_int64 * 4),
        ("steps", c_int64),
        ("unseen", c_int64),
        ("next_retired", c_int64),
        ("capacity", c_int64),
        ("added", c_int64),
        ("random", c_uint64 * 4),
        ("ledger_words", c_int64),
        ("statistics", Statistics),
    ]


class RecordFigures(ctypes.Structure):
    """`mpidata_record_figures` of record.h."""

    _fields_ = [("queued", c_int64), ("written", c_int64), ("skipped", c_int64), ("slowed_s", c_double)]


class Taken(ctypes.Structure):
    """`mpidata_taken` of taken.h."""

    _fields_ = [
        ("parcel", c_void_p),
        ("peer", c_int32),
        ("news", c_int32),
        ("dataset", c_uint32),
        ("kind", c_uint32),
        ("status", c_uint32),
        ("unused", c_uint32),
        ("number", c_uint64),
        ("n_parts", c_int64),
        ("offsets", POINTER(c_int64)),
        ("sizes", POINTER(c_int64)),
        ("memory", c_void_p),
        ("bytes", c_int64),
        ("at", ctypes.c_char * 232),
    ]


# Result type (None: status code) and argument types. MPI_Fint is a C int in every MPI of today.
_Signature = tuple[Any, list[Any]]
SIGNATURES: dict[str, _Signature] = {
    **{
        f"mpidata_scheduler_{name}": (c_int, [])
        for name in ("validation", "end_of_stream", "stop", "all_gone", "close")
    },
    **{f"mpidata_trainer_{name}": (c_int, []) for name in ("begin", "free", "checkpoint")},
    # mpidata.h; mpidata_init takes an MPI_Comm, whose size differs between MPIs: mpidata_init_f takes Fortran handles
    "mpidata_init_f": (c_int, [c_int, POINTER(c_int)]),
    "mpidata_next": (c_int, [POINTER(c_int64)]),
    "mpidata_param": (c_int, [c_char_p, POINTER(c_double)]),
    "mpidata_param_text": (c_int, [c_char_p, c_char_p, c_size_t]),
    "mpidata_put": (c_int, [c_char_p, c_void_p, c_int, c_int, POINTER(c_int64)]),
    "mpidata_put_block": (c_int, [c_char_p, c_void_p, c_int, c_int, POINTER(c_int64), POINTER(c_int64)]),
    "mpidata_iput": (c_int, [c_char_p, c_void_p, c_int, c_int, POINTER(c_int64), POINTER(c_int64)]),
    "mpidata_wait": (c_int, []),
    "mpidata_wait_for": (c_int, [c_void_p]),
    "mpidata_step": (c_int, [c_double]),
    "mpidata_fail": (c_int, [c_char_p]),
    "mpidata_fail_try": (c_int, [c_char_p]),
    "mpidata_finalize": (c_int, []),
    "mpidata_strerror": (c_char_p, [c_int]),
    "mpidata_last_error": (c_char_p, []),
    "mpidata_misuse": (c_int, [c_int, c_char_p, c_char_p]),
    "mpidata_report_error": (c_int, [c_char_p]),
    # identity.h
    "mpidata_version": (c_char_p, []),
    # beat.h
    "mpidata_beat": (None, []),
    "mpidata_beat_at": (None, [c_char_p]),
    # parcels: taken.h, loaders.h, loader.h
    "mpidata_parcel_release": (None, [c_void_p]),
    "mpidata_trainer_request": (c_int, [c_int, c_uint32, c_uint32, c_uint64, c_void_p, c_int64]),
    "mpidata_trainer_take": (c_int, [c_uint32, c_int64, POINTER(Taken), c_double]),
    "mpidata_trainer_forget": (c_int, [c_uint32]),
    "mpidata_loader_next": (c_int, [POINTER(Taken), c_double]),
    "mpidata_loader_answer": (c_int, [POINTER(Taken), c_uint32, c_int64, c_void_p, c_void_p, c_int64]),
    "mpidata_loader_sent": (c_int, [POINTER(c_int64)]),
    "mpidata_loader_starts": (None, [c_int]),
    "mpidata_loader_open": (c_int, [c_int]),
    "mpidata_loader_close": (c_int, []),
    "mpidata_loader_rest": (c_int, []),
    # trainer.h
    "mpidata_trainer_open": (c_int, [c_int, POINTER(c_int)]),
    "mpidata_trainer_steps": (c_int, [POINTER(c_int64)]),
    "mpidata_trainer_stopped": (c_int, [POINTER(c_int)]),
    "mpidata_trainer_validation": (c_int, [POINTER(c_int64), c_double]),
    "mpidata_trainer_validation_sample": (
        c_int,
        [c_int64, POINTER(c_void_p), POINTER(c_void_p), POINTER(c_double), POINTER(c_int64), POINTER(c_int64)],
    ),
    "mpidata_trainer_report": (c_int, [c_char_p, c_double]),
    "mpidata_trainer_losses": (c_int, [c_void_p, c_int64, c_int]),
    "mpidata_trainer_stop": (c_int, [c_int, c_char_p]),
    "mpidata_trainer_statistics": (c_int, [POINTER(Statistics)]),
    "mpidata_trainer_close": (c_int, [c_double]),
    # feed.h
    "mpidata_trainer_open_alone": (c_int, [c_char_p]),
    "mpidata_trainer_give": (c_int, [c_void_p, c_void_p, c_double, c_int64, c_int64, c_double]),
    "mpidata_trainer_gave_all": (c_int, [c_int64, c_int64]),
    "mpidata_trainer_gave_validation": (c_int, []),
    "mpidata_trainer_end_alone": (c_int, []),
    # draw.h
    "mpidata_trainer_start": (c_int, [c_int64]),
    "mpidata_trainer_draw": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_double]),
    "mpidata_trainer_draw_page": (c_int, [c_int64, POINTER(c_void_p), POINTER(c_int64), c_double]),
    "mpidata_trainer_ahead": (c_int, [c_double]),
    "mpidata_trainer_count_batch": (c_int, [c_double]),
    "mpidata_trainer_give_back": (c_int, [c_int64]),
    # snapshot.h
    "mpidata_trainer_snapshot_take": (c_int, [POINTER(Snapshot)]),
    "mpidata_trainer_snapshot_samples": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "mpidata_trainer_snapshot_windows": (c_int, [c_void_p]),
    "mpidata_trainer_snapshot_scales": (c_int, [c_void_p]),
    "mpidata_trainer_restore_windows": (c_int, [c_int, c_int64, c_void_p]),
    "mpidata_trainer_snapshot_write": (c_int, [c_int, c_int, c_int64, c_int64, c_int64]),
    "mpidata_trainer_snapshot_release": (c_int, [c_int64, c_int64]),
    "mpidata_trainer_snapshot_ledger": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "mpidata_trainer_snapshot_end": (c_int, [c_int, c_int64, c_char_p]),
    "mpidata_trainer_restore": (c_int, [POINTER(Snapshot), c_uint64]),
    "mpidata_trainer_restore_samples": (c_int, [c_int, c_int64, *[c_void_p] * 5]),
    "mpidata_trainer_restore_ledger": (c_int, [c_void_p]),
    "mpidata_trainer_restore_received": (c_int, [c_int64, c_void_p, c_void_p]),
    # scales.h
    "mpidata_trainer_scales": (c_int, [c_void_p]),
    "mpidata_trainer_restore_scales": (c_int, [c_void_p]),
    # rows.h
    "mpidata_permute": (None, [c_void_p, c_uint64, c_int, c_int, c_void_p, c_int64]),
    "mpidata_scatter": (c_int, [c_void_p, c_int64, c_void_p, c_int64, c_void_p, c_int64]),
    # record.h
    **{f"mpidata_trainer_record_{name}": (c_int, []) for name in ("release", "stop")},
    "mpidata_trainer_record_start": (c_int, [c_int64, c_int64, c_int]),
    "mpidata_trainer_record_take": (
        c_int,
        [c_int64, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_int64), c_double],
    ),
    "mpidata_trainer_record_write": (c_int, [c_int, c_int, c_int64, c_int64, c_int64]),
    "mpidata_trainer_record_stop": (c_int, [c_char_p]),
    "mpidata_trainer_record_figures": (c_int, [POINTER(RecordFigures)]),
    # scheduler.h
    "mpidata_scheduler_open": (c_int, [c_int, c_char_p]),
    "mpidata_scheduler_poll": (c_int, [c_void_p, c_double]),
    "mpidata_scheduler_dispatch": (c_int, [c_int, c_int64, c_int64, c_int, POINTER(c_double)]),
    "mpidata_scheduler_no_more": (c_int, [c_int]),
    "mpidata_scheduler_expect": (c_int, [c_int64, c_int64, c_int]),
    "mpidata_scheduler_relieve": (c_int, [c_int, c_int64]),
    "mpidata_scheduler_checkpoint": (c_int, [c_int64]),
    **{f"mpidata_scheduler_{name}": (c_int, [c_int]) for name in ("serves", "release", "retires", "rests")},
    **{f"mpidata_scheduler_{name}": (c_int, [c_int, c_int]) for name in ("gone", "invite")},
    "mpidata_scheduler_lose": (c_int, [c_int, c_int, c_char_p]),
    "mpidata_scheduler_one_host": (c_int, [POINTER(c_int)]),
    "mpidata_scheduler_call": (c_int, [c_int]),
    "mpidata_scheduler_has_died": (c_int, [c_int, POINTER(c_int)]),
    "mpidata_scheduler_prepare": (c_int, [c_int, c_int]),
    "mpidata_scheduler_greet": (c_int, [c_int, c_int, c_int, POINTER(c_int)]),
    "mpidata_scheduler_join": (c_int, [c_int, POINTER(c_int)]),
    "mpidata_scheduler_link": (c_int, [c_int, c_int, c_int]),
    "mpidata_scheduler_abort": (None, [c_int]),
}


# Those of libmpidata_carried.
_SHARED = (
    *(
        "next",
        "param",
        "param_text",
        "put",
        "put_block",
        "iput",
        "wait",
        "wait_for",
        "step",
        "fail",
        "fail_try",
        "finalize",
    ),
    *("strerror", "last_error", "misuse", "report_error"),
)
CARRIED: dict[str, _Signature] = {
    "mpidata_attach": (c_int, []),
    "mpidata_carried_plan": (c_char_p, []),
    "mpidata_carried_last_words": (None, [c_char_p]),
    "mpidata_available_memory": (c_int64, [c_char_p, c_char_p, POINTER(c_int)]),
    **{f"mpidata_{name}": SIGNATURES[f"mpidata_{name}"] for name in _SHARED},
}


class Library(Protocol):
    """Anything with libmpidata's functions as attributes: the library itself, or a test's stand-in."""

    def __getattr__(self, name: str) -> Any:
        """Get a function by its name in C."""


def check(library: Library, status: int) -> None:
    """Raise what a status code means.

    Parameters
    ----------
    library : Library
        Whose function returned the status, in this thread.
    status : int
        The code; MPIDATA_SUCCESS passes.

    Raises
    ------
    LibraryError
        With the sentence of mpidata_last_error(), or that of mpidata_strerror() where there is none. A RankDiedError
        where a rank has died.
    """
    if status == SUCCESS:
        return
    sentence = library.mpidata_last_error() or library.mpidata_strerror(status)
    kind = RankDiedError if status == DIED else LibraryError
    raise kind(sentence.decode("utf-8", errors="replace"))
