"""The copy of a case holds what the case holds: links of every kind, hard links, permissions, any names, many files."""

import os
import socket
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpidata.config import load_job
from mpidata.errors import JobFileError
from mpidata.launch.starting.folder.prepare import prepare_run
from mpidata.native.build_flags import carrier_program
from mpidata.run.folder import RunFolder

SOLVERS = {"start": "spawn", "lifetime": "simulation", "program": ["./heat2d"]}
VALUES = ["simulation=0", "try=1", "alpha=0.5", "group=0", "ranks=1"]


class Place:
    """A case beside a job file, and copies of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.case = path / "case"
        self.case.mkdir()
        (path / "train.py").touch()
        (path / "heat2d").touch(mode=0o755)

    def file(self, name: str, text: str = "alpha {{alpha}}\n") -> Path:
        path = self.case / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def link(self, name: str, to: str | Path) -> None:
        (self.case / name).parent.mkdir(parents=True, exist_ok=True)
        (self.case / name).symlink_to(to)

    def begin(self, **case: Any) -> RunFolder:
        job = {
            "trainers": {"ranks": 1, "program": ["python", "train.py"]},
            "solvers": {**SOLVERS, "case": {"folder": "case", **case}},
            "parameters": {"count": 2, "space": {"alpha": [0.01, 0.1]}},
            "fields": {"u": {"shape": [4]}},
        }
        (self.path / "job.yaml").write_text(yaml.safe_dump(job))
        run, _, lock = prepare_run(load_job(self.path / "job.yaml"))
        os.close(lock)
        return run

    def copy(self, **case: Any) -> Path:
        run = self.begin(**case)
        done = call("--make-case", run)
        assert done.returncode == 0, done.stderr
        return run.path / "cases" / "0-g0"

    def refused(self, **case: Any) -> str:
        with pytest.raises(JobFileError) as caught:
            self.begin(**case)
        return str(caught.value)


def call(what: str, run: RunFolder) -> subprocess.CompletedProcess[str]:
    command = [str(carrier_program()), what, str(run.path), "0", *VALUES]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "here").mkdir()
    return Place(tmp_path / "here")


@pytest.mark.parametrize("to", ["real", "../here/real", "absolute", "a link"])
def test_case_folder_may_be_a_link(place: Place, to: str) -> None:
    place.file("sub/in.txt")
    place.file("mesh")
    place.case.rename(place.path / "real")
    (place.path / "other").symlink_to("real")
    place.case.symlink_to({"absolute": place.path / "real", "a link": "other"}.get(to, to))
    copy = place.copy(fill=["sub/*"], link=["mesh"])
    assert sorted(os.listdir(copy)) == ["mesh", "sub"]
    assert (copy / "sub" / "in.txt").read_text() == "alpha 0.5\n" and (copy / "mesh").is_symlink()


def test_later_change_of_a_link_to_the_case_folder_is_ignored(place: Place) -> None:
    place.file("in.txt")
    place.case.rename(place.path / "real")
    place.case.symlink_to("real")
    run = place.begin(fill=["in.txt"])
    place.case.unlink()
    place.case.mkdir()
    assert call("--make-case", run).returncode == 0
    assert (run.path / "cases" / "0-g0" / "in.txt").read_text() == "alpha 0.5\n"


def test_links_within_the_case_are_kept_and_outward_links_become_absolute(place: Place) -> None:
    (place.path / "outside" / "deep").mkdir(parents=True)
    (place.path / "outside" / "file").write_text("out")
    place.file("a/b/file", "in")
    for name, to in {
        "a/up": "../a/b/file",
        "a/b/top": "../..",
        "to-folder": "a/b",
        "through": "to-folder/../up",
        "self": "self",
        "here": ".",
        "nowhere": "a/nothing",
    }.items():
        place.link(name, to)
    for name, to in {
        "out": "../outside/file",
        "a/out": "../../outside/deep",
        "a/b/out": "../../../outside/nothing",
        "parent": "..",
        "back": "../case/a",
        "jump": "out-folder/../file",
        "out-folder": "../outside/deep",
    }.items():
        place.link(name, to)
    place.link("absolute", place.path / "outside" / "file")
    place.link("own", place.case / "a")
    copy = place.copy()
    for name in ("a/up", "a/b/top", "to-folder", "through", "self", "here", "nowhere", "absolute", "own"):
        assert os.readlink(copy / name) == os.readlink(place.case / name), name
    assert (copy / "through").read_text() == "in" and os.path.samefile(copy / "a/b/top", copy)
    for name, to in {
        "out": "outside/file",
        "a/out": "outside/deep",
        "a/b/out": "outside/nothing",
        "parent": "",
        "back": "case/a",
        "jump": "outside/file",
        "out-folder": "outside/deep",
    }.items():
        assert os.readlink(copy / name) == str(place.path / to), name


def test_a_link_that_is_filled_becomes_a_file(place: Place) -> None:
    outside = place.path / "outside"
    outside.write_text("{{alpha}} of outside")
    place.file("templates/in")
    place.link("in", "templates/in")
    place.link("chain", "in")
    place.link("out", "../outside")
    place.link("also", "templates/in")
    copy = place.copy(fill=["in", "chain", "out"])
    assert not any((copy / name).is_symlink() for name in ("in", "chain", "out"))
    assert (copy / "in").read_text() == (copy / "chain").read_text() == "alpha 0.5\n"
    assert (copy / "out").read_text() == "0.5 of outside" and outside.read_text() == "{{alpha}} of outside"
    assert (copy / "templates" / "in").read_text() == "alpha {{alpha}}\n" == (copy / "also").read_text()


def test_fill_and_link_patterns_match_alike(place: Place) -> None:
    for name in ("a.msh", "b.msh", "sub/c.msh", "sub/deep/d.msh", "in.txt", "sub/in.txt", "sub/deep/in.txt", "data[1]"):
        place.file(name)
    copy = place.copy(fill=["**/in.txt", "data[1]"], link=["**/*.msh"])
    linked = {str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_symlink()}
    assert linked == {"a.msh", "b.msh", "sub/c.msh", "sub/deep/d.msh"}
    for name in ("in.txt", "sub/in.txt", "sub/deep/in.txt", "data[1]"):
        assert (copy / name).read_text() == "alpha 0.5\n"


def test_double_star_pattern_matches_everything_below_a_folder(place: Place) -> None:
    for name in ("in.txt", "system/a", "system/deep/b", "mesh/a/points", "mesh/b"):
        place.file(name)
    copy = place.copy(fill=["system/**"], link=["mesh/**"])
    assert (copy / "system" / "deep" / "b").read_text() == (copy / "system" / "a").read_text() == "alpha 0.5\n"
    assert (copy / "in.txt").read_text() == "alpha {{alpha}}\n"
    assert (
        (copy / "mesh" / "a").is_symlink() and (copy / "mesh" / "b").is_symlink() and not (copy / "mesh").is_symlink()
    )


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        (
            {"fill": ["sub"]},
            "case/sub is a folder. Write 'sub/*' for its files, 'sub/**' for those in its folders as well",
        ),
        ({"fill": ["su*/"]}, "case/sub is a folder"),
        ({"fill": ["to-folder"]}, "case/to-folder is a link to a folder. Name a file of the case itself"),
        ({"fill": ["to-folder/x"]}, "case/to-folder is a link, whose target is not copied"),
        ({"link": ["to-folder/x"]}, "case/to-folder is a link, whose target is not copied"),
        ({"fill": ["nowhere"]}, "is not a regular file, or is a link to nothing"),
        ({"fill": ["loop"]}, "is not a regular file, or is a link to nothing"),
        ({"fill": ["*.dat"]}, "case has no such file. Correct the name"),
        ({"link": ["*.dat"]}, "case has no such file. Correct the name"),
        ({"link": ["sub/../in"]}, "it must name files in"),
        ({"fill": ["/etc/passwd"]}, "it must name files in"),
        ({"link": ["."]}, "it must name files in"),
        ({"fill": ["a**"]}, "'**' only matches whole folders: '**/*.dat'. Correct the pattern"),
        ({"fill": ["in"], "link": ["in"]}, "case/in, which 'solvers.case.link' links. Remove it from one"),
        ({"fill": ["**/x"], "link": ["s*"]}, "case/sub/x, which 'solvers.case.link' links. Remove it from one"),
        ({"folder": "round"}, "'solvers.case.folder' is 'round', but"),
    ],
)
def test_invalid_paths_of_a_case_are_refused(place: Place, case: dict[str, Any], sentence: str) -> None:
    place.file("in")
    place.file("sub/x")
    place.link("to-folder", "sub")
    place.link("nowhere", "nothing")
    place.link("loop", "loop")
    (place.path / "round").symlink_to("round")
    said = place.refused(**case)
    assert sentence in said and "\n" not in said


def test_a_socket_is_refused_unless_it_is_linked(place: Place, tmp_path: Path) -> None:
    place.file("sub/in")
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.getcwd()
        os.chdir(place.case / "sub")  # a socket's path must be short
        try:
            listening.bind("socket")
        finally:
            os.chdir(here)
        assert "case/sub/socket, which is a socket or a device. Remove it" in place.refused()
        assert (place.copy(link=["sub"]) / "sub" / "socket").exists()


def test_pipe_is_created_in_the_copy_without_being_read(place: Place) -> None:
    os.mkfifo(place.case / "pipe", 0o620)
    copy = place.copy()
    assert stat.S_ISFIFO((copy / "pipe").lstat().st_mode)


def test_hard_links_become_separate_files(place: Place) -> None:
    first = place.file("first", "text")
    os.link(first, place.case / "second")
    copy = place.copy(fill=["first"])
    assert (copy / "second").read_text() == "text" and (copy / "second").stat().st_nlink == 1
    (copy / "second").write_text("other")
    assert first.read_text() == (copy / "first").read_text() == "text"


@pytest.mark.parametrize("umask", [0o022, 0o077, 0])
def test_permissions_stay_and_the_owner_may_write(place: Place, umask: int) -> None:
    modes = {"run": 0o755, "plain": 0o644, "read": 0o444, "set": 0o4755, "own": 0o600, "all": 0o666, "in": 0o440}
    for name, mode in modes.items():
        place.file(name).chmod(mode)
    place.file("folder/below/file").chmod(0o400)
    for name in ("folder/below", "folder"):
        (place.case / name).chmod(0o555)
    before = os.umask(umask)
    try:
        copy = place.copy(fill=["in"])
    finally:
        os.umask(before)
    for name, mode in modes.items():
        assert stat.S_IMODE((copy / name).stat().st_mode) == mode & 0o777 | 0o200, name
    assert stat.S_IMODE((copy / "folder").stat().st_mode) == 0o755
    assert (copy / "folder" / "below" / "file").exists()
    for name in ("folder", "folder/below"):
        (place.case / name).chmod(0o755)
    run = RunFolder(copy.parents[1])
    assert call("--end-case", run).returncode == 0
    assert not copy.exists()


@pytest.mark.parametrize(
    "name", [b"with blanks ", b"new\nline", b"no-\xff-utf8", b"-rf", b"100%0A", b"*", "ü".encode(), b"{{alpha}}", b"#"]
)
@pytest.mark.parametrize("how", ["copied", "filled", "linked"])
def test_any_file_name_is_copied_filled_and_linked(place: Place, name: bytes, how: str) -> None:
    for path in (name, b"sub/" + name):
        place.file(os.fsdecode(path))
    given = {"copied": {}, "filled": {"fill": ["**/*"]}, "linked": {"link": ["*/*", "[!s]*"]}}[how]
    copy = os.fsencode(place.copy(**given))
    for path in (name, b"sub/" + name):
        found = os.path.join(copy, path)
        with open(found) as file:
            assert file.read() == ("alpha 0.5\n" if how == "filled" else "alpha {{alpha}}\n")
        assert os.path.islink(found) == (how == "linked")


def test_later_files_are_only_copied_and_missing_files_are_reported(place: Place) -> None:
    place.file("a.txt")
    place.file("mesh/a")
    run = place.begin(fill=["*.txt"], link=["mesh/*"])
    place.file("b.txt")
    place.file("mesh/b")
    assert call("--make-case", run).returncode == 0
    copy = run.path / "cases" / "0-g0"
    assert (copy / "a.txt").read_text() == "alpha 0.5\n" and (copy / "b.txt").read_text() == "alpha {{alpha}}\n"
    assert (copy / "mesh" / "a").is_symlink() and not (copy / "mesh" / "b").is_symlink()
    for name, how in (("mesh/a", "linked"), ("a.txt", "filled")):
        (place.case / name).unlink()
        done = call("--make-case", run)
        assert done.returncode != 0
        assert f"case/{name}, which is {how}, was removed after the job started. Restore it" in done.stderr


def test_empty_folders_are_copied(place: Place) -> None:
    (place.case / "empty" / "deep").mkdir(parents=True)
    assert (place.copy() / "empty" / "deep").is_dir()


def test_ten_thousand_files_are_copied_within_30_s(place: Place) -> None:
    for folder in range(100):
        for name in range(100):
            place.file(f"{folder}/{name}.{'txt' if name % 2 else 'msh'}")
    run = place.begin(fill=["**/*.txt"], link=["*/*.msh"])
    started = time.monotonic()
    assert call("--make-case", run).returncode == 0
    took = time.monotonic() - started
    copy = run.path / "cases" / "0-g0"
    files = [path for path in copy.rglob("*") if not path.is_dir()]
    assert len(files) == 10_000 and sum(path.is_symlink() for path in files) == 5_000
    assert (copy / "99" / "99.txt").read_text() == "alpha 0.5\n"
    assert took < 30.0
    assert call("--end-case", run).returncode == 0
    assert not copy.exists()
