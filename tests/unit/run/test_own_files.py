"""What is trusted only from this user: files, run folders, and everything that decides which programs run."""

import fcntl
import json
import os
import signal
import stat
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from launch_job import write_job

from mpidata.config import load_job
from mpidata.errors import LaunchError
from mpidata.launch.starting import by_hand
from mpidata.launch.starting.folder.prepare import prepare_run
from mpidata.launch.starting.folder.resume import look_at, make_ready
from mpidata.launch.starting.named_run import NamedRun
from mpidata.run.own_files import check_own_folder, new_file, opener, read_own, write_text

OTHER = 65534


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user can reach and write."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


def as_another(act: Callable[[], object]) -> bool:
    """Run `act` as another user; return whether it succeeded."""
    assert os.geteuid() == 0, "only root can be another user"
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(OTHER)
            os.setuid(OTHER)
            os.umask(0)
            act()
            os._exit(0)
        except PermissionError:
            os._exit(1)
        except BaseException:
            traceback.print_exc()
            os._exit(2)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 1)
    return status == 0


def modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def test_failed_write_keeps_the_old_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_text(tmp_path / "file", "one é")
    write_text(tmp_path / "file", "two")
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "file", "\udc80")
    assert [path.name for path in tmp_path.iterdir()] == ["file"] and (tmp_path / "file").read_text() == "two"


def test_other_users_cannot_write_new_files(tmp_path: Path, umask: Callable[[int], int]) -> None:
    umask(0)
    write_text(tmp_path / "text", "")
    write_text(tmp_path / "secret", "", 0o600)
    new_file(tmp_path / "new")
    with open(tmp_path / "log", "a", opener=opener):
        pass
    assert modes(tmp_path) == {"text": 0o644, "secret": 0o600, "new": 0o644, "log": 0o644}
    with pytest.raises(FileExistsError):
        new_file(tmp_path / "new")
    umask(0o077)
    write_text(tmp_path / "text", "")
    assert modes(tmp_path)["text"] == 0o600


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o077])
def test_other_users_cannot_write_a_run_folder(tmp_path: Path, umask: Callable[[int], int], mask: int) -> None:
    umask(mask)
    run, _, lock = prepare_run(load_job(write_job(tmp_path)))
    os.close(lock)
    make_ready(look_at(run.path), "none")
    found = {**modes(run.path), ".": stat.S_IMODE(run.path.stat().st_mode)}
    private = {name: found.pop(name) for name in ("private", "private/plan", "private/lock")}
    assert private == {"private": 0o700, "private/plan": 0o600, "private/lock": 0o600}
    for name, mode in found.items():
        assert mode == (0o755 if (run.path / name).is_dir() else 0o644) & ~mask, name


def test_only_own_files_and_folders_are_trusted(tmp_path: Path) -> None:
    file, link, pipe = tmp_path / "file", tmp_path / "link", tmp_path / "pipe"
    file.write_text("é")
    link.symlink_to(file)
    os.mkfifo(pipe)
    assert read_own(file) == "é"
    with pytest.raises(OSError, match="symbolic links"):
        read_own(link)
    assert read_own(pipe) == ""
    file.chmod(0o664)
    with pytest.raises(LaunchError, match=f"{file} can be written by others, so mpidata does not read it.*chmod go-w"):
        read_own(file)
    file.chmod(0o600)
    os.chown(file, OTHER, OTHER)
    with pytest.raises(LaunchError, match=f"{file} belongs to .*, not to .*, so mpidata does not read it.*map owners"):
        read_own(file)
    (tmp_path / "folder").mkdir(0o755)
    check_own_folder(tmp_path / "folder")
    (tmp_path / "alias").symlink_to("folder")
    with pytest.raises(OSError, match="Not a directory"):
        check_own_folder(tmp_path / "alias")


def test_start_file_of_another_user_is_refused(shared: Path) -> None:
    file = shared / "runs" / ".start-7.json"
    file.parent.mkdir()
    file.parent.chmod(0o777)
    assert as_another(lambda: by_hand.tell_run(file, run=shared / "trap"))
    with pytest.raises(LaunchError, match=f"has not reported the run folder .*{file} belongs to "):
        by_hand.find_run(file, 0.3)
    by_hand.tell_run(file, run=shared)  # in its place
    assert by_hand.find_run(file, 0.3) == shared and modes(shared)["runs/.start-7.json"] == 0o600
    file.unlink()
    assert as_another(lambda: file.symlink_to(shared / "victim"))
    by_hand.tell_run(file, run=shared)
    assert not (shared / "victim").exists() and by_hand.find_run(file, 0.3) == shared


def test_note_of_another_user_is_refused(shared: Path) -> None:
    job = load_job(write_job(shared))
    runs = shared / "runs" / "job"
    runs.mkdir(parents=True)
    runs.chmod(0o777)
    run, _, lock = prepare_run(job)
    os.close(lock)
    note = runs / ".begun-night"
    assert as_another(lambda: note.write_text(f"{run.path}\n"))
    with pytest.raises(LaunchError, match=f"{note} belongs to "):
        NamedRun(job, "night")
    note.unlink()
    assert as_another(lambda: note.symlink_to(shared / "elsewhere"))
    with pytest.raises(LaunchError, match=f"Cannot open {note}: Too many levels of symbolic links"):
        NamedRun(job, "night")
    note.unlink()
    with closing(NamedRun(job, "night")) as named:
        assert named.run is None and not as_another(lambda: os.open(note, os.O_RDONLY))


def test_another_user_cannot_lock_a_run(shared: Path) -> None:
    run, _, lock = prepare_run(load_job(write_job(shared)))
    os.close(lock)
    for path in (run.private / "lock", run.plan):
        assert not as_another(lambda path=path: os.open(path, os.O_RDONLY))  # type: ignore[misc]
    said, tell = os.pipe()

    def hold() -> None:
        fcntl.flock(os.open(run.path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(tell, b"x")
        signal.pause()

    holder = os.fork()
    if holder == 0:
        try:
            as_another(hold)
        finally:  # also if the other user's process is killed first
            os._exit(0)
    try:
        assert os.read(said, 1) == b"x"
        os.close(run.hold())
    finally:
        for pid in (*map(int, Path(f"/proc/{holder}/task/{holder}/children").read_text().split()), holder):
            os.kill(pid, 9)
        os.waitpid(holder, 0)


def test_run_is_resumed_through_a_link(tmp_path: Path) -> None:
    run, _, lock = prepare_run(load_job(write_job(tmp_path)))
    os.close(lock)
    (tmp_path / "latest").symlink_to(run.path)
    assert look_at(tmp_path / "latest").run == run


def test_start_file_of_rank_0_is_json(tmp_path: Path) -> None:
    by_hand.tell_run(tmp_path / "told", run=tmp_path)
    assert json.loads(read_own(tmp_path / "told"))["run"] == str(tmp_path)
    with pytest.raises(LaunchError, match=r"Cannot write .*told/x: File exists"):
        by_hand.tell_run(tmp_path / "told" / "x", run=tmp_path)


def test_file_is_synced_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    synced, replaced = os.fsync, os.replace

    def sync(descriptor: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        synced(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", lambda *paths: done.append("name") or replaced(*paths))
    write_text(tmp_path / "plan", "text")
    assert done == ["file", "name", "folder"] and (tmp_path / "plan").read_text() == "text"
