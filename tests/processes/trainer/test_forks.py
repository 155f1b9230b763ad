"""A process that a trainer forks; in a process of its own, because other loaded modules also have threads and locks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2] / "unit"

SCRIPT = """
import faulthandler, os, signal, sys, threading
sys.path.append({here!r})
import torch
from fake_library import FakeLibrary, make_trainer
from mpidata import MPIStreamDataset, StreamError

library = FakeLibrary()
library.pages = {pages}
trainer = make_trainer(library)
stream = MPIStreamDataset(2)
batches = iter(stream)
next(batches)
uses = [stream.checkpoint, lambda: stream.report(loss=1.0), lambda: next(batches), lambda: next(iter(stream))]


def in_child():
    for use in uses:
        try:
            use()
        except StreamError as error:
            print(error, flush=True)
    batches.__del__()
    stream.close()


def fork():
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        try:
            in_child()
        finally:
            os._exit(sys.exc_info()[0] is not None)
    status.append(os.waitpid(child, 0)[1])


faulthandler.enable()
status = []
with trainer._lock:  # as that of a thread that is just leaving; this thread could take it again
    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
print("status", *status, flush=True)
print(library.drawn, bool(library.stopped), library.reports, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("pages", ["[]", "None"])
def test_forked_child_does_not_wait_for_locks_of_the_trainer(pages: str) -> None:
    script = SCRIPT.format(here=str(HERE), pages=pages)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=os.environ)
    *refusals, status, unused = done.stdout.splitlines()
    assert status == "status 0", done.stdout + done.stderr
    assert len(refusals) == 4 and all("The stream cannot be used in a forked process" in said for said in refusals)
    assert unused == "2 False []"
