"""A loader makes batch after batch without asking the system for memory each time."""

import subprocess
import sys

FAULTS = """
import resource, sys
import numpy as np
from mpidata.loaders.memory import keep_freed
if "keep" in sys.argv:
    keep_freed()
def batches(n):
    for _ in range(n):
        held = [np.ones(8 << 20, np.uint8) for _ in range(3)]
        del held
batches(3)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
batches(10)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*arguments: str) -> int:
    return int(subprocess.run([sys.executable, "-c", FAULTS, *arguments], capture_output=True, check=True).stdout)


def test_freed_memory_is_used_again() -> None:
    assert faults("keep") < 100 < faults() / 10
