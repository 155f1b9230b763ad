"""The file by which the job is asked to end."""

from pathlib import Path

import pytest

from mpidata.run.stop import StopRequest, read_stop


@pytest.mark.parametrize(
    ("text", "request_", "name"),
    [
        ("SIGUSR1\n", StopRequest("SIGUSR1"), "SIGUSR1"),
        ("SIGINT\n", StopRequest("SIGINT"), "Ctrl-C"),
        ("SIGINT without-checkpoint\n", StopRequest("SIGINT", checkpoint=False), "Ctrl-C"),
        ("", StopRequest("SIGTERM"), "SIGTERM"),
    ],
)
def test_stop_request_is_read_from_its_file(tmp_path: Path, text: str, request_: StopRequest, name: str) -> None:
    (tmp_path / "stop").write_text(text)
    read = read_stop(tmp_path / "stop")
    assert read == request_ and read.name == name and read.interrupt == (name == "Ctrl-C")
    assert not text or read.text() == text.strip()


def test_missing_stop_file_means_no_request(tmp_path: Path) -> None:
    assert read_stop(tmp_path / "stop") is None
