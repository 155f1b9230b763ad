"""Makes a process write its record as slowly as to a slow disk."""

import time

from mpidata.record.file import RecordFile


def slow_down(row_s: float = 0.0, call_s: float = 0.0) -> None:
    """Sleep before rows are appended: once per row, and once per call."""
    append = RecordFile.append

    def slow(self: RecordFile, rows, write):
        time.sleep(call_s + row_s * len(rows.step))
        return append(self, rows, write)

    RecordFile.append = slow
