"""Run a module of mpidata as a program: `python run_module.py FOLDER MODULE ARGUMENT...`.

As `python -m MODULE`, but what lies in the working directory is not imported: others may be able to write there.
FOLDER, an absolute path, is looked into first instead; "" for none. Python's options do not do that: -P came with 3.11,
and -I ignores PYTHONPATH, which sites use.
"""

import os  # loaded at every start of Python, so not looked for
import sys

__all__ = ["module_command"]


def module_command(module: str, *arguments: str, folder: str | os.PathLike[str] = "") -> tuple[str, ...]:
    """Compose the command that runs a module.

    Parameters
    ----------
    module : str
        Of mpidata: `mpidata.scheduler`.
    *arguments : str
        For it.
    folder : path
        Where what it imports for the user is looked for first.
    """
    absolute = os.path.abspath(folder) if folder else ""
    return (sys.executable, os.path.abspath(__file__), absolute, module, *arguments)


def _leave_out_working_directory() -> None:
    """Take from the module path the folder of this file, and the working directory unless PYTHONPATH names it."""
    named = [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    here = [os.path.dirname(os.path.abspath(__file__)), *({"", os.getcwd()} - set(named))]
    sys.path[:] = [entry for entry in sys.path if entry not in here]


def _main() -> None:
    _leave_out_working_directory()
    import runpy

    import mpidata  # noqa: F401  # this one, whatever the folder holds

    folder, module = sys.argv[1:3]
    del sys.argv[1:3]
    if folder:
        sys.path.insert(0, folder)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
