"""What cannot work under Slurm is refused within 20 s, with the cause and a remedy, and never with status 0."""

import re
import shlex
from pathlib import Path

import pytest
from batch import BatchFolder
from jobs import BIN, DRAIN
from mpis import make

SIM = "def simulate(alpha):\n    yield {'u': [[alpha] * 6] * 4}\n"


def refused(folder: BatchFolder, environment: Path, command: str) -> str:
    """Run a command in an allocation of two nodes with the programs of an environment; return its output."""
    folder.write(sim=SIM)
    folder.job(trainers=DRAIN, solvers={"function": "sim:simulate"})
    script = f"export PATH={shlex.quote(str(environment))}:$PATH; SECONDS=0; {command}; echo status $? after $SECONDS"
    result = folder.wait(folder.sbatch(script, "--nodes=2", "--ntasks-per-node=2"), timeout=60)
    status, seconds = map(int, re.findall(r"^status (\d+) after (\d+)$", result.output, re.MULTILINE)[0])
    text = result.output if result.run is None else result.logs()
    assert status != 0 and seconds < 20 and "Traceback" not in text, text
    return text


@pytest.mark.parametrize("plugin", ["pmi2", pytest.param("none", marks=pytest.mark.full)])
def test_srun_plugin_unsuited_to_open_mpi_is_refused(folder: BatchFolder, plugin: str) -> None:
    text = refused(folder, BIN, f"srun --mpi={plugin} -n 3 mpidata run job.yaml")
    assert "MPI of libmpidata, Open MPI v5" in text and "--mpi=pmix" in text, text


@pytest.mark.full
@pytest.mark.parametrize("plugin", ["pmix", "none"])
def test_srun_plugin_unsuited_to_mpich_is_refused(folder: BatchFolder, plugin: str) -> None:
    text = refused(folder, make("mpich").bin, f"srun --mpi={plugin} -n 3 mpidata run job.yaml")
    assert "MPI of libmpidata, MPICH Version: 5" in text and "--mpi=pmi2" in text, text


@pytest.mark.parametrize("start", ["split", "spawn"])
def test_more_groups_than_slots_are_refused(folder: BatchFolder, start: str) -> None:
    text = refused(folder, BIN, f"mpidata run job.yaml --set solvers.groups=9 --set solvers.start={start}")
    assert "have 4 CPUs, but the job needs 10 (1 trainers, 9 groups of 1)" in text and "mpidata submit" in text
