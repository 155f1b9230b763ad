import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpidata.errors import StreamError
from mpidata.native.uncaught import describe

HERE = Path(__file__).parents[2] / "unit"

STREAM = "from mpidata.trainer.dataset import MPIStreamDataset\n"  # imports torch
JOIN = """
import atexit, os, sys
sys.path.append({here!r})
from pathlib import Path
from fake_library import FakeLibrary, make_plan, make_trainer
from mpidata.trainer import join as job
from mpidata.native import uncaught
library = FakeLibrary(make_plan(folder=Path(__file__).parent))
trainer = make_trainer(library)
uncaught.end_on_exception(trainer.plan.folder, job._report)
library.mpidata_trainer_stop = lambda failed, reason: print("stop", failed, reason.decode()) or 0
library.mpidata_trainer_close = lambda timeout: print("close", timeout < 10) or 0
atexit.register(print, "exit functions ran")  # MPI_Finalize would be among them
atexit.register(job._close_at_exit, trainer, os.getpid())
"""


def run(tmp_path, script):
    path = tmp_path / "train.py"
    path.write_text(JOIN.format(here=str(HERE)) + script)
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60)


def test_failing_script_is_reported_and_ends_without_exit_functions(tmp_path):
    script = f"{STREAM}for batch in MPIStreamDataset(2):\n    raise ValueError('no such thing')\n"
    result = run(tmp_path, script)
    line = JOIN.count("\n") + 3
    assert result.returncode == 1
    assert result.stdout.splitlines() == [f"stop 1 ValueError: no such thing (train.py line {line})", "close True"]
    assert "Traceback (most recent call last)" in result.stderr and "ValueError: no such thing" in result.stderr


def test_line_is_that_of_the_script_not_of_a_library(tmp_path):
    result = run(tmp_path, "import torch\ndef loss():\n    return torch.ones(2) + torch.ones(3)\nloss()\n")
    line = JOIN.count("\n") + 3
    assert result.stdout.startswith("stop 1 RuntimeError: The size of tensor a (2) must match")
    assert f"(train.py line {line})\n" in result.stdout


def test_multi_line_error_is_complete_in_the_log_and_reported_by_its_first_lines(tmp_path):
    mismatches = "RuntimeError: Error(s) for Net:\\n\\tsize mismatch for 0.weight\\n\\tsize mismatch for 0.bias."
    result = run(
        tmp_path, f"from mpidata.errors import StreamError\nraise StreamError('It does not fit. {mismatches}')\n"
    )
    first, line = "It does not fit. RuntimeError: Error(s) for Net:", JOIN.count("\n") + 2
    assert f"stop 1 {first} size mismatch for 0.weight (train.py line {line})\n" in result.stdout
    rest = f"\tsize mismatch for 0.weight\n\tsize mismatch for 0.bias (train.py line {line})\n"
    assert result.stderr == f"mpidata: {first}\n{rest}"


def test_script_ended_by_ctrl_c_leaves_the_job_cleanly(tmp_path):
    (tmp_path / "stop").write_text("SIGINT without-checkpoint")
    script = (
        "import dataclasses\n"
        "trainer.plan = dataclasses.replace(trainer.plan, run=Path(__file__).parent)\n"
        "library.stopped.append('Ctrl-C')\n"
        f"{STREAM}for batch in MPIStreamDataset(2): pass\n"
    )
    result = run(tmp_path, script)
    line = JOIN.count("\n") + 5
    assert result.stderr == f"mpidata: Ctrl-C ended the loop of the script (train.py line {line}).\n"
    assert (result.returncode, result.stdout.splitlines()) == (0, ["close False", "exit functions ran"])


def test_script_that_ends_before_the_stream_stops_the_job(tmp_path):
    result = run(tmp_path, f"{STREAM}next(iter(MPIStreamDataset(2)))\n")
    assert result.returncode == 0
    assert result.stdout.splitlines() == [
        "stop 0 the script ended after batch 1, before the stream was over",
        "close False",
        "exit functions ran",
    ]


def test_sys_exit_of_the_script_is_reported(tmp_path):
    ends = f"{STREAM}job._note_exit_status()\nnext(iter(MPIStreamDataset(2)))\nsys.exit(3)\n"
    result = run(tmp_path, ends)
    assert result.returncode == 3
    reason = "the script ended by sys.exit(3) after batch 1, before the stream was over"
    assert result.stdout.splitlines()[0] == f"stop 0 {reason}"


def test_script_that_uses_the_complete_stream_ends_cleanly(tmp_path):
    result = run(tmp_path, f"{STREAM}stream = MPIStreamDataset(2)\nfor batch in stream: pass\n")
    assert (result.returncode, result.stdout.splitlines()) == (0, ["close False", "exit functions ran"])


def test_iterator_that_outlives_the_script_does_nothing(tmp_path):
    result = run(tmp_path, f"{STREAM}batches = iter(MPIStreamDataset(2))\nnext(batches)\nsys.keep = batches\n")
    assert result.returncode == 0 and result.stderr == ""
    assert result.stdout.count("stop") == 1


def test_forked_child_leaves_the_job_alone(tmp_path):
    script = (
        "trainer.ended = True\n"
        "sys.stdout.flush()\n"
        "child = os.fork()\n"
        "if child == 0: raise ValueError('in the child')\n"
        "os.waitpid(child, 0)\nprint('parent')\n"
    )
    result = run(tmp_path, script)
    assert result.returncode == 0
    assert result.stdout.splitlines() == ["parent", "close False", "exit functions ran"]
    assert "ValueError: in the child" in result.stderr


def test_failure_to_close_is_reported_without_a_traceback(tmp_path):
    result = run(tmp_path, "trainer.ended = True\nlibrary.mpidata_trainer_close = lambda timeout: 10\n")
    assert result.returncode == 1
    assert result.stderr.strip() == "The sentence. Where. What to do."


def test_unexpected_error_while_leaving_the_job_ends_the_process(tmp_path):
    """MPI_Finalize would wait for the others, and these for this process."""
    result = run(tmp_path, "trainer.ended = True\nlibrary.mpidata_trainer_close = None\n")
    assert (result.returncode, result.stdout) == (1, "")
    assert "Traceback (most recent call last)" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("Leaving the job failed with TypeError: ")


def raised(text):
    try:
        exec(text)
    except Exception as error:
        return error
    raise AssertionError


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("raise ValueError('first\\nsecond')", "ValueError: first (<string> line 1)"),
        ("raise KeyError", "KeyError (<string> line 1)"),
        ("import mpidata.errors; raise mpidata.errors.StreamError('A. B.')", "A. B."),
    ],
)
def test_describe_formats_the_error_with_its_line(text, sentence):
    assert describe(raised(text), Path("/nowhere")) == sentence


def test_describe_names_no_line_of_the_interpreter(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code = compile("import mpidata.errors; raise mpidata.errors.StreamError('A. B.')", "<frozen runpy>", "exec")
    with pytest.raises(StreamError) as caught:
        exec(code)
    assert describe(caught.value, tmp_path) == "A. B."


def test_describe_unwraps_errors_of_data_loader_workers():
    error = ValueError(
        "Caught ValueError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n"
        "  File ...\nValueError: the true reason\n"
    )
    assert describe(error, None) == "ValueError: the true reason"


def test_describe_skips_installed_packages_below_the_folder(tmp_path):
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "package_of_test.py").write_text("def f():\n    raise ValueError('x')\n")
    script = tmp_path / "train.py"
    script.write_text("\nimport package_of_test\npackage_of_test.f()\n")
    sys.path.append(str(tmp_path / "site-packages"))
    try:
        exec(compile(script.read_text(), os.fspath(script), "exec"))
    except ValueError as error:
        assert describe(error, tmp_path) == "ValueError: x (train.py line 3)"
    finally:
        sys.path.remove(str(tmp_path / "site-packages"))


TORCH = (
    "import torch.distributed as dist\n"
    "dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)\n"  # wraps the hook
)


@pytest.mark.parametrize("error", ["ValueError('no such thing')", "StreamError('No such thing.')"])
def test_torch_distributed_does_not_swallow_the_error_message(tmp_path, error):
    # Printed before the job learns of the error, because it may then end this process at any moment.
    report = "library.mpidata_trainer_close = lambda timeout: os.write(2, b'reported') and 0\n"
    result = run(tmp_path, f"from mpidata.errors import StreamError\n{report}{TORCH}raise {error}\n")
    assert result.returncode == 1
    assert ("Traceback (most recent call last)" in result.stderr) == error.startswith("ValueError")
    assert result.stderr.count(": no such thing\n") + result.stderr.count(
        ": No such thing"
    ) == 1 and result.stderr.endswith("\nreported")
