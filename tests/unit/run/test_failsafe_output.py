"""A stream that never raises, whatever its reader does and whatever characters are written."""

import io
import os

from mpidata.run.failsafe_output import FailsafeStream


def test_characters_that_cannot_be_encoded_are_replaced() -> None:
    raw = io.BytesIO()
    stream = FailsafeStream(io.TextIOWrapper(raw, encoding="latin-1"))
    stream.write("größer ▁▂\n")
    stream.write("more\n")
    stream.flush()
    assert raw.getvalue().decode("latin-1") == "größer ??\nmore\n"


def test_closed_reader_causes_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        stream = FailsafeStream(pipe)
        for _ in range(3):
            assert stream.write("words\n") == 6
            stream.flush()
