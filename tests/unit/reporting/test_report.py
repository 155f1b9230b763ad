"""The report page: complete, self-contained, and made from whatever a run folder has."""

import base64
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner
from made_run import MadeRun

from mpidata.cli import main
from mpidata.errors import MpidataError
from mpidata.figures.pictures import write_picture
from mpidata.reporting.end_report import OFF, report_at_end
from mpidata.reporting.make import make_report
from mpidata.run.folder import RunFolder

_EMPTY = {"meta", "link", "img", "br"}


class Page(HTMLParser):
    """Checks that tags are closed, and keeps texts and pictures."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.pictures: list[bytes] = []
        self.alts: list[str] = []
        source = path.read_text()
        assert not re.search(r"(src|href|url)\W+(https?:|//|[\w./]+\.(css|js|png|svg))", source)
        self.feed(source)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _EMPTY:
            self.open.append(tag)
        if tag == "img":
            found = dict(attrs)
            self.alts.append(found["alt"] or "")
            self.pictures.append(base64.b64decode(str(found["src"]).partition("base64,")[2], validate=True))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def full_run(folder: Path, simulations: int = 6) -> MadeRun:
    run = MadeRun(folder)
    run.parameters(simulations)
    run.losses(simulations)
    run.simulations(simulations, 3)
    run.events((3, "group_lost", {"group": 1, "how": "was killed by <SIGKILL>"}))
    run.summary()
    return run


def test_report_shows_figures_and_plots_of_a_run(tmp_path: Path) -> None:
    run = full_run(tmp_path)
    path = make_report([run.path])
    assert path == run.path / "report.html"
    page = Page(path)
    for text in ("rod/1: complete", "60 received, 15.0 a second", "first 2, last 0.25", "sampler: sobol",
                 "was killed by <SIGKILL>", "3 of 1 rank: ./solver"):  # fmt: skip
        assert text in page.text
    assert page.alts == [
        "Timeline of 3 groups with 6 complete simulations",
        "6 of 6 simulations by their parameters alpha, beta",
    ]
    assert b"<svg" in page.pictures[0] and page.pictures[1].startswith(b"\x89PNG")


def test_report_shows_lost_joined_and_retired_trainers(tmp_path: Path) -> None:
    run = full_run(tmp_path)
    run.events(
        (1, "trainer_lost", {"trainer": 1, "left": 2, "how": "was killed by SIGSEGV"}),
        (2, "trainer_joined", {"trainer": 2}),
        (3, "trainer_retired", {"trainer": 0}),
    )
    run.summary(lost_trainers=[1], joined_trainers=[2], retired_trainers=[0], run_again=4)
    page = Page(make_report([run.path]))
    for text in (
        "trainers lostnumber 1; 4 simulations ran again",
        "trainers joined2",
        "trainers left0",
        "trainer 1was killed by SIGSEGV",
    ):
        assert text in page.text, page.text
    for what in (b"trainer lost", b"trainer joined", b"trainer retired"):
        assert what in page.pictures[0]


def test_many_simulations_are_binned(tmp_path: Path) -> None:
    page = Page(make_report([full_run(tmp_path, 2001).path]))
    assert page.pictures[0].startswith(b"\x89PNG") and "How busy each group was" in page.text
    assert page.alts[1].startswith("1001 of 2001") or page.alts[1].startswith("2001 of 2001")


def test_report_shows_the_last_picture_of_each_name(tmp_path: Path) -> None:
    run = full_run(tmp_path)
    for batch in (9, 10):
        write_picture(RunFolder(run.path), "field", batch, b"%d" % batch)
    write_picture(RunFolder(run.path), "error", 5, b"5")
    (tmp_path / "secret").write_text("secret")
    (run.path / "pictures" / "field-11.png").symlink_to(tmp_path / "secret")
    page = Page(make_report([run.path]))
    assert page.alts[-2:] == ["error, batch 5", "field, batch 10"] and page.pictures[-2:] == [b"5", b"10"]


def test_a_plot_that_cannot_be_drawn_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> str:
        raise ValueError("arange: cannot compute length")

    monkeypatch.setattr("mpidata.reporting.make.draw_timeline", fail)
    page = Page(make_report([full_run(tmp_path).path]))
    assert "This plot was left out: drawing it failed with ValueError: arange: cannot compute length." in page.text
    assert page.alts == ["6 of 6 simulations by their parameters alpha, beta"]


def test_report_needs_only_a_job_file(tmp_path: Path) -> None:
    page = Page(make_report([MadeRun(tmp_path).path]))
    assert "rod/1: not ended" in page.text and not page.pictures


@pytest.mark.parametrize("name", ["summary.json", "parameters.csv", "losses.csv", "events.jsonl", "machine.json"])
@pytest.mark.parametrize("contents", [b"", b"{", b"[1]", b"\xff\0\n1,2,\n", b'{"training": 3, "samples": []}'])
def test_damaged_files_do_not_prevent_the_report(
    tmp_path: Path, name: str, contents: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpidata.reporting.make.draw_timeline", lambda story: "")
    monkeypatch.setattr("mpidata.reporting.make.draw_parameters", lambda look: "")
    run = full_run(tmp_path)
    (run.path / name).write_bytes(contents)
    assert "Settings" in Page(make_report([run.path])).text


def test_several_runs_are_compared_on_one_page(tmp_path: Path) -> None:
    runs = [full_run(tmp_path / name, 6).path for name in ("a", "b")]
    done = CliRunner().invoke(main, ["report", *map(str, runs)])
    assert done.output == f"Open {runs[1] / 'compared.html'}\n"
    page = Page(runs[1] / "compared.html")
    assert len(page.pictures) == 4 and page.text.count("60 received") == 2


def test_missing_run_and_unwritable_report_are_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["report", str(tmp_path / "none")])
    assert done.exit_code == 2 and "is not a run folder: it has no job.yaml" in done.output
    run = full_run(tmp_path)
    with pytest.raises(MpidataError, match="cannot write the report"):
        make_report([run.path], tmp_path / "nowhere" / "report.html")


def test_report_is_made_at_the_end_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunFolder(full_run(tmp_path).path)
    assert report_at_end(run) == ""  # conftest.py turns it off
    monkeypatch.delenv(OFF)
    assert report_at_end(run) == f"report {run.report}" and run.report.exists()
    run.job.unlink()
    said = report_at_end(run)
    assert (
        "is not a run folder" in said and "MpidataError" not in said and ".." not in said.replace(str(run.path), "")
    ), said


def test_missing_matplotlib_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = full_run(tmp_path)
    monkeypatch.delenv(OFF)
    monkeypatch.setattr("mpidata.reporting.end_report.has_matplotlib", lambda: False)
    assert "pip install 'mpidata[report]'" in report_at_end(RunFolder(run.path))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = CliRunner().invoke(main, ["report", str(run.path)])
    assert done.exit_code == 1 and "matplotlib, which is not installed" in done.output
