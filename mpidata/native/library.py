"""The functions of libmpidata: those of mpidata.h, of the trainers, the loaders and the scheduler.

Calls release the GIL, so that a call that waits does not stop other threads.
"""

from __future__ import annotations

from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Protocol

from mpidata.errors import DeviceError, LibraryError, RankDiedError
from mpidata.native import constants

__all__ = ["CARRIED", "SIGNATURES", "Library", "check"]

# Result type and argument types. MPI_Fint is a C int in all current MPIs.
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
    "mpidata_put_strided": (c_int, [c_char_p, c_void_p, c_int, c_int, *[POINTER(c_int64)] * 3]),
    "mpidata_device_stream": (c_int, [c_void_p]),
    "mpidata_map_create": (c_int, [c_int64, c_void_p, POINTER(c_void_p)]),
    "mpidata_map_free": (c_int, [POINTER(c_void_p)]),
    "mpidata_map_known": (c_int, [c_int64, c_void_p, c_int64, POINTER(c_void_p)]),
    **{
        f"mpidata_put_{name}": (c_int, [c_char_p, c_void_p, c_int, c_int, POINTER(c_int64), c_void_p])
        for name in ("mapped", "indices")
    },
    "mpidata_iput": (c_int, [c_char_p, c_void_p, c_int, c_int, POINTER(c_int64), POINTER(c_int64)]),
    "mpidata_wait": (c_int, []),
    "mpidata_infer": (c_int, [c_void_p, c_int, c_void_p, c_int, POINTER(c_int64)]),
    "mpidata_infer_begin": (c_int, [c_void_p, c_int, c_void_p, c_int, c_void_p, POINTER(c_int64)]),
    "mpidata_infer_wait": (c_int, [POINTER(c_int64)]),
    "mpidata_wait_for": (c_int, [c_void_p]),
    "mpidata_step": (c_int, [c_double]),
    "mpidata_refresh": (c_int, [POINTER(c_int64)]),
    "mpidata_published": (c_int, [c_char_p, POINTER(c_int), POINTER(c_int), POINTER(c_int64), POINTER(c_void_p)]),
    "mpidata_published_as": (c_int, [c_char_p, c_int, c_int, POINTER(c_int64), POINTER(c_void_p)]),
    "mpidata_published_at": (
        c_int,
        [c_int64, POINTER(c_char_p), POINTER(c_int), POINTER(c_int), POINTER(c_int64), POINTER(c_void_p)],
    ),
    "mpidata_fail": (c_int, [c_char_p]),
    "mpidata_fail_try": (c_int, [c_char_p]),
    "mpidata_finalize": (c_int, []),
    "mpidata_strerror": (c_char_p, [c_int]),
    "mpidata_last_error": (c_char_p, []),
    "mpidata_misuse": (c_int, [c_int, c_char_p, c_char_p]),
    "mpidata_declared_dtype": (c_int, [c_char_p]),
    "mpidata_report_error": (c_int, [c_char_p]),
    # identity.h
    "mpidata_version": (c_char_p, []),
    # beat.h
    "mpidata_beat": (None, []),
    "mpidata_beat_at": (None, [c_char_p]),
    # parcels: parcel_view.h, loaders.h, loader.h
    "mpidata_parcel_release": (None, [c_void_p]),
    "mpidata_trainer_request": (c_int, [c_int, c_uint32, c_uint32, c_uint64, c_void_p, c_int64]),
    "mpidata_trainer_take": (c_int, [c_uint32, c_int64, c_void_p, c_double]),
    "mpidata_trainer_forget": (c_int, [c_uint32]),
    "mpidata_loader_next": (c_int, [c_void_p, c_double]),
    "mpidata_loader_next_into": (c_int, [c_void_p, c_void_p, c_int64, c_double]),
    "mpidata_loader_answer": (c_int, [c_void_p, c_uint32, c_int64, c_void_p, c_void_p, c_int64]),
    "mpidata_loader_published": (c_int, [c_int64, c_void_p]),
    "mpidata_loader_sent": (c_int, [POINTER(c_int64)]),
    "mpidata_loader_starts": (None, [c_int]),
    "mpidata_loader_open": (c_int, [c_int, c_int]),
    "mpidata_loader_begin": (c_int, []),
    "mpidata_loader_fail": (c_int, [c_char_p]),
    "mpidata_loader_close": (c_int, []),
    "mpidata_loader_rest": (c_int, []),
    # mate.h
    "mpidata_mate_open": (c_int, [c_int]),
    "mpidata_mate_look": (c_int, []),
    "mpidata_mate_await_end": (None, []),
    "mpidata_mate_close": (c_int, []),
    # server.h
    "mpidata_server_open": (c_int, [c_int]),
    "mpidata_server_await_end": (None, []),
    "mpidata_server_close": (c_int, []),
    # trainer.h
    "mpidata_trainer_lock_pages": (c_int, [c_int]),
    "mpidata_trainer_open": (c_int, [c_int, POINTER(c_int)]),
    "mpidata_trainer_steps": (c_int, [POINTER(c_int64)]),
    "mpidata_trainer_cancel": (c_int, [c_void_p, c_int64, c_void_p, POINTER(c_int64)]),
    "mpidata_trainer_regroup": (c_int, [c_int]),
    "mpidata_trainer_hold": (c_int, [c_int]),
    "mpidata_trainer_agreed_checkpoint": (c_int, [POINTER(c_int64), POINTER(c_int64)]),
    "mpidata_trainer_takes_place": (c_int, []),
    "mpidata_trainer_pack_trained": (c_int, [POINTER(c_void_p), POINTER(c_int64)]),
    "mpidata_trainer_take_trained": (c_int, [c_void_p, c_int64]),
    "mpidata_trainer_rests": (c_int, []),
    "mpidata_trainer_be_at": (c_int, [c_int64]),
    "mpidata_trainer_wanted": (c_int, [POINTER(c_int64), POINTER(c_int64)]),
    "mpidata_trainer_trained": (c_int, [c_int64, c_void_p, c_int64, c_void_p]),
    "mpidata_trainer_meet": (c_int, [POINTER(c_int)]),
    "mpidata_trainer_met": (c_int, []),
    "mpidata_trainer_stopped": (c_int, [POINTER(c_int)]),
    "mpidata_trainer_validation": (c_int, [POINTER(c_int64), c_double]),
    "mpidata_trainer_validation_sample": (
        c_int,
        [c_int64, c_void_p, c_void_p, POINTER(c_double), POINTER(c_int64), POINTER(c_int64)],
    ),
    "mpidata_trainer_validation_copy": (c_int, [c_int64, c_void_p]),
    "mpidata_trainer_validation_constants": (c_int, [c_int64, c_void_p]),
    # constants/held.h
    "mpidata_trainer_constants_drawn": (c_int, [c_void_p, POINTER(c_int64)]),
    "mpidata_trainer_constants_find": (c_int, [c_int64, c_void_p]),
    "mpidata_trainer_constants_look": (c_int, [c_void_p, c_void_p, c_void_p, POINTER(c_int64), POINTER(c_int64)]),
    "mpidata_trainer_constants_release": (c_int, [c_void_p]),
    "mpidata_trainer_report": (c_int, [c_char_p, c_double]),
    "mpidata_trainer_losses": (c_int, [c_void_p, c_int64, c_int]),
    "mpidata_trainer_stop": (c_int, [c_int, c_char_p]),
    "mpidata_trainer_statistics": (c_int, [c_void_p]),
    "mpidata_trainer_close": (c_int, [c_double]),
    # feed.h
    "mpidata_trainer_open_alone": (c_int, [c_char_p]),
    "mpidata_trainer_give": (c_int, [c_void_p, c_void_p, c_void_p, c_double, c_int64, c_int64, c_int64, c_double]),
    "mpidata_trainer_gave_all": (c_int, [c_int64, c_int64]),
    "mpidata_trainer_gave_validation": (c_int, []),
    "mpidata_trainer_end_alone": (c_int, []),
    # draw.h
    "mpidata_trainer_start": (c_int, [c_int64]),
    "mpidata_trainer_start_together": (c_int, [c_int64]),
    "mpidata_trainer_draw_share": (c_int, [POINTER(c_int64), POINTER(c_int64), c_double]),
    "mpidata_trainer_draw": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_double]),
    "mpidata_trainer_draw_ragged": (c_int, [c_int, *[c_void_p] * 6, c_double]),
    "mpidata_trainer_draw_numbers": (c_int, [c_void_p, c_double]),
    "mpidata_trainer_draw_page": (c_int, [c_int64, POINTER(c_void_p), POINTER(c_int64), c_double]),
    "mpidata_trainer_ahead": (c_int, [c_double]),
    "mpidata_trainer_had_ahead": (c_int, []),
    "mpidata_trainer_count_batch": (c_int, [c_double]),
    "mpidata_trainer_give_back": (c_int, [c_int64]),
    # snapshot.h
    "mpidata_trainer_snapshot_take": (c_int, [c_void_p]),
    "mpidata_trainer_snapshot_samples": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "mpidata_trainer_snapshot_numbers": (c_int, [c_void_p]),
    "mpidata_trainer_snapshot_windows": (c_int, [c_void_p]),
    "mpidata_trainer_snapshot_constants": (c_int, [c_void_p, POINTER(c_int64), c_void_p]),
    "mpidata_trainer_snapshot_scales": (c_int, [c_void_p]),
    "mpidata_trainer_restore_windows": (c_int, [c_int, c_int64, c_void_p]),
    "mpidata_trainer_snapshot_write": (c_int, [c_int, c_int, c_int64, c_int64, c_int64]),
    "mpidata_trainer_snapshot_release": (c_int, [c_int64, c_int64]),
    "mpidata_trainer_snapshot_ledger": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "mpidata_trainer_snapshot_end": (c_int, [c_int, c_int64, c_char_p]),
    "mpidata_trainer_restore": (c_int, [c_void_p, c_uint64]),
    "mpidata_trainer_restore_constants": (c_int, [c_int64, c_int64, c_void_p, c_void_p, c_void_p]),
    "mpidata_trainer_restore_samples": (c_int, [c_int, c_int64, *[c_void_p] * 7]),
    "mpidata_trainer_restore_ledger": (c_int, [c_void_p]),
    "mpidata_trainer_restore_received": (c_int, [c_int64, c_void_p, c_void_p]),
    "mpidata_trainer_restore_elsewhere": (c_int, [c_int64, c_void_p, c_void_p]),
    # scales.h
    "mpidata_trainer_scales": (c_int, [c_void_p]),
    "mpidata_trainer_restore_scales": (c_int, [c_void_p]),
    # published/publish.h
    "mpidata_trainer_publish": (c_int, [c_int64, *[c_void_p] * 5, c_int, POINTER(c_int64)]),
    "mpidata_trainer_published": (c_int, [POINTER(c_void_p), POINTER(c_int64), POINTER(c_int64)]),
    "mpidata_trainer_published_release": (c_int, [c_int64]),
    "mpidata_trainer_restore_published": (c_int, [c_void_p, c_int64]),
    # rows.h
    "mpidata_permute": (None, [c_void_p, c_int, c_uint64, c_int, c_int, c_void_p, c_int64]),
    "mpidata_scatter": (c_int, [c_void_p, c_int64, c_void_p, c_int64, c_void_p, c_int64]),
    "mpidata_gather": (c_int, [c_void_p, c_void_p, c_int64, c_int64, c_void_p, c_int64]),
    # record.h
    **{f"mpidata_trainer_record_{name}": (c_int, []) for name in ("release", "stop")},
    "mpidata_trainer_record_start": (c_int, [c_int64, c_int64, c_int64, c_int]),
    "mpidata_trainer_record_take": (
        c_int,
        [c_int64, c_int64, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_int64), c_double],
    ),
    **{f"mpidata_trainer_record_{name}": (c_int, [c_void_p]) for name in ("constants", "numbers")},
    "mpidata_trainer_record_write": (c_int, [c_int, c_int, c_int64, c_int64, c_int64]),
    "mpidata_trainer_record_stop": (c_int, [c_char_p]),
    "mpidata_trainer_record_figures": (c_int, [c_void_p]),
    # scheduler.h
    "mpidata_scheduler_open": (c_int, [c_int, c_char_p]),
    "mpidata_scheduler_poll": (c_int, [c_void_p, c_int, c_double, POINTER(c_int)]),
    "mpidata_scheduler_dispatch": (c_int, [c_int, c_int64, c_int64, c_int, POINTER(c_double)]),
    "mpidata_scheduler_no_more": (c_int, [c_int]),
    "mpidata_scheduler_expect": (c_int, [c_int64, c_int64, c_int]),
    "mpidata_scheduler_cancel": (c_int, [c_int64, c_int, c_int]),
    "mpidata_scheduler_cancel_group": (c_int, [c_int, c_int64, c_int64]),
    "mpidata_scheduler_relieve": (c_int, [c_int, c_int64]),
    "mpidata_scheduler_checkpoint": (c_int, [c_int64]),
    "mpidata_scheduler_trainers": (c_int, [c_int64, c_int64]),
    **{
        f"mpidata_scheduler_{name}": (c_int, [c_int])
        for name in ("serves", "answers", "teaches", "retires", "rests", "hands_over")
    },
    **{f"mpidata_scheduler_{name}": (c_int, [c_int, c_int]) for name in ("gone", "invite", "dismiss", "release")},
    "mpidata_scheduler_lose_trainer": (c_int, [c_int]),
    "mpidata_scheduler_retire_trainer": (c_int, [c_int]),
    "mpidata_scheduler_join_trainer": (c_int, [c_int]),
    "mpidata_scheduler_lose": (c_int, [c_int, c_int, c_char_p]),
    "mpidata_scheduler_one_host": (c_int, [POINTER(c_int)]),
    "mpidata_scheduler_call": (c_int, [c_int]),
    "mpidata_scheduler_has_died": (c_int, [c_int, POINTER(c_int)]),
    "mpidata_scheduler_trainer_lives": (c_int, [c_int, POINTER(c_int)]),
    "mpidata_scheduler_prepare": (c_int, [c_int, c_int]),
    "mpidata_scheduler_greet": (c_int, [c_int, c_int, c_int, POINTER(c_int)]),
    "mpidata_scheduler_join": (c_int, [c_int, POINTER(c_int)]),
    "mpidata_scheduler_link": (c_int, [c_int, c_int, c_int]),
    "mpidata_scheduler_ask_published": (c_int, [c_int64]),
    "mpidata_scheduler_published": (c_int, [c_void_p]),
    "mpidata_scheduler_teach": (c_int, [c_uint64, c_int64, c_void_p, c_void_p]),
    "mpidata_scheduler_learnt": (c_int, [c_void_p]),
    "mpidata_scheduler_abort": (None, [c_int]),
}


# Functions of libmpidata_carried.
_SHARED = (
    *(
        "next",
        "param",
        "param_text",
        "put",
        "put_block",
        "put_strided",
        "device_stream",
        "put_mapped",
        "put_indices",
        "map_create",
        "map_free",
        "map_known",
        "iput",
        "wait",
        "wait_for",
        "infer",
        "infer_begin",
        "infer_wait",
        "step",
        "refresh",
        "published",
        "published_as",
        "published_at",
        "fail",
        "fail_try",
        "finalize",
    ),
    *("strerror", "last_error", "misuse", "report_error", "declared_dtype"),
)
CARRIED: dict[str, _Signature] = {
    "mpidata_attach": (c_int, []),
    "mpidata_carried_cancelled": (c_int, []),
    "mpidata_carried_plan": (c_char_p, []),
    "mpidata_carried_last_words": (None, [c_char_p]),
    # constants.h, routing.h
    "mpidata_constants": (c_void_p, []),
    "mpidata_routing_trainers": (None, [c_int, c_int, c_void_p, c_void_p, c_void_p, c_int64]),
    "mpidata_routing_own": (c_int64, [c_int, c_int, c_int, c_int64, c_int64]),
    "mpidata_routing_steps": (None, [c_int, c_int, c_int, c_int64, c_void_p, c_int64]),
    # memory.h
    "mpidata_available_memory": (c_int64, [c_char_p, c_char_p, POINTER(c_int)]),
    **{f"mpidata_{name}": SIGNATURES[f"mpidata_{name}"] for name in _SHARED},
}


class Library(Protocol):
    """Anything with libmpidata's functions as attributes: the library itself, or a test's stand-in."""

    def __getattr__(self, name: str) -> Any:
        """Return a function by its name in C."""


def check(library: Library, status: int) -> None:
    """Raise the error of a status code.

    Parameters
    ----------
    library : Library
        The library whose function returned the status, in this thread.
    status : int
        The code; MPIDATA_SUCCESS passes.

    Raises
    ------
    LibraryError
        With the sentence of mpidata_last_error(), or that of mpidata_strerror() if there is none. A RankDiedError
        if a rank has died, a DeviceError if a device's driver has failed.
    """
    if status == constants.SUCCESS:
        return
    sentence = library.mpidata_last_error() or library.mpidata_strerror(status)
    kinds = {constants.ERR_DIED: RankDiedError, constants.ERR_DEVICE: DeviceError}
    raise kinds.get(status, LibraryError)(sentence.decode("utf-8", errors="replace"))
