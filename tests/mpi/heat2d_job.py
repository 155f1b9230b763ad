"""The heat example as a job of the tests."""

import shutil
import subprocess
from pathlib import Path

import yaml
from jobs import PROGRAMS, JobFolder, environment, mpicc, python

HEAT2D = Path(__file__).parents[2] / "examples" / "heat2d"


def build_heat2d(folder: Path) -> None:
    """Build the solver, and preloads/kill_switch.c, which is preloaded into it, in a folder."""
    for source in ("heat2d.c", "Makefile", "heat2d.yaml"):
        shutil.copy(HEAT2D / source, folder)
    done = subprocess.run(["make", "-B", "heat2d"], cwd=folder, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    command = [mpicc(), "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", PROGRAMS / "preloads/kill_switch.c"]
    done = subprocess.run([*command, "-o", folder / "kill_switch.so", "-ldl"], env=environment(), capture_output=True)
    assert done.returncode == 0, done.stderr


def write_heat2d_job(folder: JobFolder, built: Path, count: int, solvers: dict, **keys: object) -> None:
    """Write a job of `count` simulations, 100 steps each, for two trainers with trainers/census/census.py."""
    shutil.copytree(built, folder.path, dirs_exist_ok=True)
    job = yaml.safe_load((built / "heat2d.yaml").read_text())
    job["name"] = "job"
    job["trainers"] = {"ranks": 2, "program": keys.pop("program", python("trainers/census/census.py"))}
    preload = f"LD_PRELOAD=$LD_PRELOAD:'{folder.path / 'kill_switch.so'}'"
    program = ["sh", "-c", f"{preload} exec ./heat2d"]
    job["solvers"] = {"groups": 2, "program": program, "retries": 20} | solvers
    job["solvers"] = {"timeout_s": 2, "start_timeout_s": 2} | job["solvers"]
    job["parameters"]["count"] = count
    job["validation"] = {"count": 0}
    job["buffer"] = {"policy": "fifo", "capacity": 500, "tail": "repeat"}
    folder.write_job(job | keys)
