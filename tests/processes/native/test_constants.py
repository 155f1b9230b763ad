"""Python reads the constants of C when they are first used."""

import subprocess
import sys

LOADED = "any('libmpidata' in line for line in open('/proc/self/maps'))"


def test_importing_modules_loads_no_library() -> None:
    modules = ("cli", "config", "run.folder", "run.plan", "native.library", "native.structures", "native.event")
    code = f"import {', '.join('mpidata.' + name for name in modules)}\nassert not {LOADED}\n"
    code += f"assert mpidata.native.constants.END == 1 and {LOADED}\n"
    subprocess.run([sys.executable, "-c", code], check=True)
