"""`mpidata doctor` in an allocation starts a rank on each node, and reports the node of each problem."""

import json

import pytest
from batch import BatchFolder
from jobs import BIN


@pytest.mark.full
@pytest.mark.parametrize("starter", ["auto", "srun"])
def test_doctor_checks_all_nodes(folder: BatchFolder, starter: str) -> None:
    folder.job(trainers={"program": ["true"]}, solvers={"program": ["true"]}, launch={"with": starter})
    doctor = f"'{BIN}/mpidata' doctor job.yaml --json"
    # Each node has its own /dev/shm, so a folder made there does not exist on the others.
    script = f"{doctor} >good.json; mkdir /dev/shm/here; {doctor} --set output=/dev/shm/here >bad.json; test $? = 1"
    result = folder.wait(folder.sbatch(script, "--nodes=3", "--ntasks-per-node=2"), timeout=150)
    assert result.status == 0, result.output
    good, bad = (json.loads((folder.path / f"{name}.json").read_text()) for name in ("good", "bad"))
    found = {check["check"]: check for check in good["checks"]}
    assert good["ok"] and found["all nodes"]["found"] == "3: n1, n2, n3"
    assert found["MPI on all nodes"]["found"].startswith("3 ranks, one on each")
    assert found["slots"]["found"] == "3 ranks, 6 CPUs on 3 nodes"
    (failed,) = [check for check in bad["checks"] if check["state"] == "failed"]
    assert failed["check"] == "folders of all nodes" and failed["found"] == "/dev/shm/here does not exist: n2, n3"
