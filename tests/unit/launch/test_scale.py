"""`mpidata scale`, with a scheduler that answers as the test wants."""

import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from launch_job import make_plan
from waiting import wait_until

from mpidata import cli
from mpidata.launch.watching import scale as scaling
from mpidata.run.folder import RunFolder
from mpidata.run.scale_requests import Answer, answer, take


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(make_plan(tmp_path, {}, attempt=3).run)
    folder.job.touch()
    return folder


def scheduler(run: RunFolder, *said: Answer) -> threading.Thread:
    def serve() -> None:
        left = list(said)
        while left:
            for request in wait_until(lambda: take(run, 3)):
                one = left.pop(0)
                answer(run, request, Answer(one.refused, f"{one.sentence} {request.count} {request.kind}."))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


def test_scale_prints_the_answers_of_the_scheduler(run: RunFolder) -> None:
    served = scheduler(run, Answer(False, "Good:"), Answer(False, "Yes:"))
    result = CliRunner().invoke(cli.main, ["scale", str(run.path), "--groups", "16", "--loaders", "12"])
    served.join(5)
    assert result.exit_code == 0 and result.output == "Good: 12 loaders.\nYes: 16 groups.\n"
    assert not list(run.private.glob("scale*"))


def test_refused_request_exits_with_status_2(run: RunFolder) -> None:
    scheduler(run, Answer(True, "No:")).join(0)
    result = CliRunner().invoke(cli.main, ["scale", str(run.path), "--loaders", "0", "--groups", "2"])
    assert result.exit_code == 2 and result.output == "mpidata: No: 0 loaders.\n"
    assert not list(run.private.glob("scale*"))


def test_scale_without_a_running_job_or_options_is_refused(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(scaling, "_ANSWER_S", 0.2)
    result = CliRunner().invoke(cli.main, ["scale", str(run.path), "--loaders", "2"])
    assert result.exit_code == 2 and "has not answered within 0.2 s. If the job runs" in result.output
    assert not list(run.private.glob("scale*"))
    run.summary.write_text("{}")
    result = CliRunner().invoke(cli.main, ["scale", str(run.path), "--loaders", "2"])
    assert result.exit_code == 2 and "no longer runs" in result.output
    result = CliRunner().invoke(cli.main, ["scale", str(tmp_path), "--loaders", "2"])
    assert result.exit_code == 2 and "is not a run folder" in result.output
    result = CliRunner().invoke(cli.main, ["scale", str(run.path)])
    assert result.exit_code == 2 and "Give --loaders, --groups or --trainers" in result.output
