"""`mpidata run` prints the cause of a mistake, with the log that shows it, and nothing untrue above."""

from collections.abc import Callable
from pathlib import Path

from jobs import DRAIN, JobFolder, python


def test_missing_shared_library_of_a_spawned_program_is_reported(
    folder: JobFolder, compiled: Callable[[str], Path]
) -> None:
    (folder.path / "solver").write_bytes(compiled("pattern").read_bytes().replace(b"libmpidata.so", b"libmpidatb.so"))
    (folder.path / "solver").chmod(0o755)
    folder.job(trainers=DRAIN, solvers={"program": ["./solver"], "start": "spawn", "retries": 0})
    result = folder.run(timeout=60)
    assert result.status == 1 and Path(result.summary["log"]).name.endswith("-solver-0.log")
    *_, log, said, sentence = result.output.splitlines()
    assert log == f"Last lines of {result.summary['log']}:"
    assert "error while loading shared libraries: libmpidatb.so" in said
    assert sentence.startswith("Group 0 could not be started, and no group is left. Its program ended with exit status")
    assert "a shared library was not found" in sentence


def test_death_before_all_ranks_joined_is_reported_as_the_cause(folder: JobFolder) -> None:
    """The waiting trainer reports neither that MPI failed nor that the scheduler has died."""
    folder.job(
        trainers={"program": python("trainers/only_joins.py")},
        solvers={"program": python("solvers/python/dies_before_joining.py")},
    )
    result = folder.run(timeout=60)
    assert result.status == 1 and "ended with exit status 1" in result.summary["error"], result.output
    assert "\n  no mesh\n" in result.output
    assert "MPI call failed" not in result.output and "has died. Resume" not in result.output, result.logs()
