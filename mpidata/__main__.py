"""The command `mpidata`, also as `python -m mpidata`."""

import errno
import os
import sys

from mpidata.startup import begin, find_home, take_early

__all__ = ["main"]


def main() -> None:
    """Run the command; does not return."""
    take_early(runs=sys.argv[1:2] == ["run"])
    find_home(os.environ)
    from mpidata.cli import main as command  # takes most of the time until the job starts

    begin()
    try:
        command(prog_name="mpidata")
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        os.write(2, f"mpidata: cannot write: {error.strerror}. Free disk space, or redirect the output.\n".encode())
        os._exit(2)  # the interpreter would try to write the rest


if __name__ == "__main__":
    main()
