"""The command `mpidata`, also as `python -m mpidata`."""

import os
import sys

from mpidata.early import find_home, take_early

__all__ = ["main"]


def main() -> None:
    """Run the command; does not return."""
    if sys.argv[1:2] == ["run"]:
        take_early()
    find_home(os.environ)
    from mpidata.cli import main as command  # takes most of the time until the job starts

    command(prog_name="mpidata")


if __name__ == "__main__":
    main()
