"""The tutorial's commands work in the order of the page, and its model agrees with its solver."""

import re
import subprocess
from pathlib import Path

from jobs import environment
from pages import ROOT, blocks, files

PAGE = ROOT / "docs" / "tutorial.md"


def test_tutorial_ends_with_a_model_that_predicts(tmp_path: Path) -> None:
    for name, text in files(PAGE).items():
        (tmp_path / name).write_text(text)
    variables = environment() | {"MPIDATA_REPORT": "true"}
    commands = "\n".join(block.text for block in blocks("sh", page=PAGE) if block.name is None)
    if " " in str(ROOT):  # as in docs/solver.md
        commands = re.sub(r"^.*\$\(mpidata config .*$", r'eval "\g<0>"', commands, flags=re.MULTILINE)
    done = subprocess.run(
        ["sh", "-eu", "-c", commands], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=170
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "runs" / "burgers" / "1" / "report.html").exists()
    predicted = re.findall(r"is (\S+), predicted (\S+)$", done.stdout, re.MULTILINE)
    assert len(predicted) == 5
    for true, guessed in predicted:
        assert abs(float(true) - float(guessed)) < 0.15
