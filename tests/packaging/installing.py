"""Copies of the sources, and environments to install them into."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ["c_api", "fortran_api", "launch", "mpidata", "slurm_templates", "setup.py", "pyproject.toml", "LICENSE"]
BUILT_IN_PLACE = ["bin", "include", "lib", "share"]


def run(*command: str | Path, cwd: Path | None = None, **environment: str) -> str:
    """Run a command with PATH, HOME and the given environment; return its output. The command must succeed."""
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=kept | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=170,
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


def make_environment(folder: Path) -> Path:
    """Make a virtual environment without mpidata that shares this one's packages; return its interpreter."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    paths = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (Path(site) / "packages.pth").write_text("".join(f"{path}\n" for path in paths))
    return python


def copy_sources(folder: Path) -> Path:
    """Copy the sources of an installation, without files that were built in place."""
    for name in SOURCES:
        if (ROOT / name).is_dir():
            ignored = ["__pycache__", *(BUILT_IN_PLACE if name == "mpidata" else [])]
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(*ignored))
        else:
            shutil.copy(ROOT / name, folder)
    return folder
