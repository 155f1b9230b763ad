"""The program of an inference rank: it joins the job and answers the solvers."""

from __future__ import annotations

import base64
import functools
import gc
import json
import time
from pathlib import Path
from typing import Any

from mpidata.errors import MpidataError
from mpidata.native import constants
from mpidata.native.library import Library, check
from mpidata.native.loading import load_checked
from mpidata.native.uncaught import end_on_exception, fail
from mpidata.run.failsafe_output import keep_printing

__all__ = ["main"]


def main(encoded: str) -> int:
    """Answer until the scheduler releases this rank; returns its exit status. Initialises MPI.

    Parameters
    ----------
    encoded : str
        The settings, as in the plan.
    """
    keep_printing()
    settings = json.loads(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
    folder = Path(settings["folder"])
    import torch  # noqa: F401  # before all ranks wait for this one
    from mpi4py import MPI

    library = load_checked()
    check(library, library.mpidata_loader_open(MPI.COMM_WORLD.py2f(), constants.ROLE_INFERENCE))
    end_on_exception(folder, lambda error, sentence: _report(library, sentence, not isinstance(error, MpidataError)))
    try:
        _serve(library, settings)
    except SystemExit:  # otherwise the end of Python would finalise MPI, which waits for the other ranks
        _report(library, f"{settings['function']} has ended its rank with sys.exit()", False)
        fail("mpidata: the function has ended this rank with sys.exit().")
    return 0


def _serve(library: Library, settings: dict[str, Any]) -> None:
    from mpidata.inference.function import Function, read_weights
    from mpidata.inference.over_mpi import Asked
    from mpidata.inference.serving import Serving
    from mpidata.inference.weights import Published, Weights
    from mpidata.run.folder import RunFolder
    from mpidata.run.side_channel import say_late

    function = Function(settings["function"])
    read = read_weights(settings["weights"]) if settings["weights"] else None
    published = Published(library) if function.takes_weights else None
    weights = Weights(read, published, settings["resumed"])
    check(library, library.mpidata_loader_begin())
    library.mpidata_loader_starts(False)
    gc.freeze()  # existing objects stay; searching them would delay solvers
    asked = Asked(library)
    run = RunFolder.here()
    say = print if run is None else functools.partial(say_late, run.path)
    Serving(asked, function, weights, settings["batch"], settings["wait_ms"] / 1e3, say).serve()
    asked.close()


def _report(library: Library, sentence: str, has_traceback: bool) -> None:
    """Make the scheduler end the job, and with it this rank, with the exception's sentence."""
    what = sentence.rstrip(".")
    library.mpidata_beat_at(f"raised {what}".encode(errors="replace"))
    where = " The traceback is in the log of the inference rank." if has_traceback else ""
    library.mpidata_loader_fail(f"inference.function: {what}.{where}".encode())
    time.sleep(constants.AFTER_ERROR_MS / 1e3)
