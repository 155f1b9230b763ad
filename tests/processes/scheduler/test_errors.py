import json
import os
import subprocess
from pathlib import Path

from mpidata.run_module import module_command


def run_module(run: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"MPIDATA_RUN": run}
    command = module_command("mpidata.scheduler", folder=run)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_run_folder_without_a_plan_fails_with_a_summary(tmp_path: Path) -> None:
    ended = run_module(str(tmp_path))
    assert ended.returncode == 1
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["status"] == "failed" and f"Cannot read the plan {tmp_path}/private/plan" in summary["error"]
    assert summary["error"] in ended.stderr and "Traceback" not in ended.stderr


def test_scheduler_started_by_hand_is_refused() -> None:
    ended = run_module("")
    assert ended.returncode == 2 and ended.stderr.startswith("MPIDATA_RUN is not set.")
