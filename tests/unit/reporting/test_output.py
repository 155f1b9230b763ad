"""`mpidata report -o FILE`, whatever FILE is: nothing is replaced but regular files."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from made_run import MadeRun

from mpidata.cli import main
from mpidata.errors import MpidataError
from mpidata.reporting.make import make_report


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return MadeRun(tmp_path).path


def device(path: Path, minor: int) -> Path:
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, minor))  # never the system's own: a fault would remove it
    return path


@pytest.mark.parametrize("exists", [True, False])
def test_the_target_of_a_link_is_written(run: Path, tmp_path: Path, exists: bool) -> None:
    (tmp_path / "other").mkdir()
    link, target = tmp_path / "link.html", tmp_path / "other" / "target.html"
    if exists:
        target.write_text("old")
    link.symlink_to(Path("other") / "target.html")
    done = CliRunner().invoke(main, ["report", str(run), "-o", str(link)])
    assert done.output == f"Open {link}\n"
    assert link.is_symlink() and target.read_text().startswith("<!DOCTYPE html>")
    assert [path.name for path in target.parent.iterdir()] == ["target.html"]


def test_regular_file_is_replaced_atomically(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    with open(path) as reader:
        make_report([run], path)
        assert reader.read() == "old" and path.read_text().startswith("<!DOCTYPE html>")


def test_fifo_is_written_and_not_replaced(run: Path, tmp_path: Path) -> None:
    fifo, got = tmp_path / "fifo", list[str]()
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: got.append(fifo.read_text()), daemon=True)
    reader.start()
    done = CliRunner().invoke(main, ["report", str(run), "-o", str(fifo)])
    assert stat.S_ISFIFO(fifo.lstat().st_mode)
    reader.join()
    assert got[0].startswith("<!DOCTYPE html>") and got[0].endswith("</html>\n") and done.output == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can create devices")
def test_devices_are_not_replaced(run: Path, tmp_path: Path) -> None:
    null, full = device(tmp_path / "null", 3), device(tmp_path / "full", 7)
    assert make_report([run], null) == null
    done = CliRunner().invoke(main, ["report", str(run), "-o", str(full)])
    assert done.exit_code == 1 and f"{full}: cannot write the report: No space left on device." in done.output
    assert all(stat.S_ISCHR(path.lstat().st_mode) for path in (null, full))


def test_stdout_has_only_the_report(run: Path, tmp_path: Path) -> None:
    stdout = tmp_path / "stdout"  # not the system's own link, which a fault would replace
    stdout.symlink_to("/proc/self/fd/1")
    command = [sys.executable, "-m", "mpidata", "report", str(run), "-o", str(stdout)]
    piped = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert piped.startswith("<!DOCTYPE html>") and piped.endswith("</html>\n")
    kept = tmp_path / "kept"
    with open(kept, "a") as file:
        file.write("before\n")
        file.flush()
        subprocess.run(command, stdout=file, check=True)
    assert kept.read_text() == "before\n" + piped and stdout.is_symlink()


def test_unwritable_output_is_refused(run: Path, tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    for path in (tmp_path, loop, tmp_path / "none" / "page.html", tmp_path / ("x" * 300)):
        with pytest.raises(MpidataError, match="cannot write the report: .*. Name another file with -o"):
            make_report([run], path)
    assert loop.is_symlink() and tmp_path.is_dir()
