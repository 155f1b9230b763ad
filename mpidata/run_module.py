"""Run a module of mpidata as a program: `python run_module.py FOLDER MODULE ARGUMENT...`.

Like `python -m MODULE`, but does not import from the working directory, which others may be able to write. Instead,
FOLDER, an absolute path, is searched first; "-" for none. Python's options do not suffice: -P requires 3.11, and -I
ignores PYTHONPATH, which sites use.
"""

import os  # already loaded when Python starts, so not searched for
import sys

__all__ = ["module_command"]


def module_command(module: str, *arguments: str, folder: str | os.PathLike[str] = "") -> tuple[str, ...]:
    """Compose the command that runs a module.

    Parameters
    ----------
    module : str
        A module of mpidata, for example `mpidata.scheduler`.
    *arguments : str
        Arguments of the module.
    folder : path
        The folder that is searched first for the user's modules.
    """
    absolute = os.path.abspath(folder) if folder else "-"  # MPICH 5 cannot spawn programs with empty arguments
    return (sys.executable, os.path.abspath(__file__), absolute, module, *arguments)


def _leave_out_working_directory() -> None:
    """Remove from the module path the folder of this file, and the working directory unless PYTHONPATH names it."""
    named = [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    here = [os.path.dirname(os.path.abspath(__file__)), *({"", os.getcwd()} - set(named))]
    sys.path[:] = [entry for entry in sys.path if entry not in here]


def _main() -> None:
    _leave_out_working_directory()
    import runpy

    import mpidata  # noqa: F401  # this one, whatever FOLDER contains

    folder, module = sys.argv[1:3]
    del sys.argv[1:3]
    if folder != "-":
        sys.path.insert(0, folder)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
