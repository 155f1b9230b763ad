import errno
import os
import tempfile
from pathlib import Path

import pytest

from mpidata.errors import LaunchError
from mpidata.launch.starting.folder import temporary


def test_folders_of_the_job_are_created_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(temporary, "_SEGMENTS", tmp_path / "shm")
    with temporary.make_folders(tmp_path) as folders:
        assert folders.segments is None  # the folder does not exist
    (tmp_path / "shm").mkdir()
    (tmp_path / "shm" / "sm_segment.other").touch()
    with temporary.make_folders(tmp_path) as folders:
        assert folders.segments is not None and folders.segments.parent == tmp_path / "shm"
        assert (folders.session / "run").read_text() == (folders.segments / "run").read_text() == f"{tmp_path}\n"
        (folders.session / "ompi.1" / "0").mkdir(parents=True)
        (folders.segments / "sm_segment.1").touch()
    assert os.listdir(tmp_path) == ["shm"] and os.listdir(tmp_path / "shm") == ["sm_segment.other"]


def test_folders_of_a_killed_job_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(temporary, "_SEGMENTS", tmp_path)
    prefix = f"mpidata-{os.getuid()}-"
    abandoned, foreign = (tmp_path / name for name in (f"{prefix}a", f"mpidata-{os.getuid()}1-a"))
    for folder in (abandoned, foreign):
        folder.mkdir()
        (folder / "file").touch()
    with temporary.make_folders(tmp_path) as folders:
        temporary.remove_abandoned()
        assert folders.session.is_dir() and not abandoned.exists() and foreign.is_dir()


def test_last_job_removes_the_folders_of_a_killed_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(temporary, "_SEGMENTS", tmp_path / "none")
    killed, last = temporary.make_folders(tmp_path / "1"), temporary.make_folders(tmp_path / "2")
    for lock in killed.locks:  # as the kernel does
        os.close(lock)
    last.__exit__()
    assert not os.listdir(tmp_path)


def test_folder_that_is_removed_before_its_lock_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(temporary, "_SEGMENTS", tmp_path / "none")
    make, times = tempfile.mkdtemp, []

    def make_and_remove(**given: object) -> str:
        folder = make(**given)  # type: ignore[call-overload]
        times.append(folder)
        if len(times) == 1:  # another job ends just now
            temporary.remove_abandoned()
        return str(folder)

    monkeypatch.setattr(tempfile, "mkdtemp", make_and_remove)
    with temporary.make_folders(tmp_path) as folders:
        assert len(times) == 2 and folders.session.is_dir() and (folders.session / "run").exists()


def test_folder_that_cannot_be_locked_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(temporary.fcntl, "flock", fails)
    with pytest.raises(LaunchError, match="No locks available"):
        temporary.make_folders(tmp_path)
    assert os.listdir(tmp_path) == []


def test_missing_temporary_folder_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(LaunchError, match="TMPDIR"):
        temporary.make_folders(tmp_path)
