"""Files of a run of commit e88f24a can still be read: its plan, a checkpoint, and its record."""

import base64
import gzip
import io
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

import mpidata
from mpidata.checkpoint.files import damage, read_scheduler
from mpidata.checkpoint.trainer_file import TrainerFile
from mpidata.config import load_job
from mpidata.run.plan import Plan
from mpidata.sampling.drawing import make_sampler

HERE = Path(__file__).parent
CHECKPOINT = HERE / "checkpoint"


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan.parse((HERE / "plan").read_text())


def test_old_plan_is_written_unchanged(plan: Plan) -> None:
    assert plan.text() == (HERE / "plan").read_text()
    assert (plan.loaders, plan.policy, plan.record_path) == (1, "reservoir", Path("/tmp/old/runs/old/1/record"))


def test_old_checkpoint_matches_the_plan(plan: Plan) -> None:
    assert damage(CHECKPOINT) is None
    with TrainerFile(CHECKPOINT / "trainer-0000.h5") as file:
        file.check(plan)


def test_old_states_are_restored_with_the_current_classes() -> None:
    with TrainerFile(CHECKPOINT / "trainer-0000.h5") as file:
        saved = file.state()
    states = {name: torch.load(io.BytesIO(one.contents), weights_only=False) for name, one in saved.items()}
    names = ("DataLoader", "FileDataset", "Normalizer", "MPIStreamDataset", "RecordedDataset")
    assert states["classes"]["classes"] == [getattr(mpidata, name) for name in names]
    assert states["normalizer"]["mean_u"].dtype == torch.float64 and states["model"].keys() == {"weight", "bias"}
    datasets = [state for name, state in states.items() if name not in ("classes", "normalizer", "model")]
    assert len(datasets) == 2 and all(state["epoch"] > 0 for state in datasets)


def test_old_sampler_state_resumes(tmp_path: Path) -> None:
    pytest.importorskip("numpy", minversion="2")  # with which its state was pickled
    (tmp_path / "job.yaml").write_text(
        "trainers: {program: [sh]}\nsolvers: {program: [sh]}\nfields: {u: {shape: [3]}}\n"
        "parameters: {count: 24, sampler: breed, generation: 4, space: {alpha: [0.1, 1.0], left: {integers: [1, 8]}}}\n"
    )
    sampler = make_sampler(load_job(tmp_path / "job.yaml"))
    state = read_scheduler(CHECKPOINT)["sampler"]["state"]
    sampler.load_state_dict(pickle.loads(base64.b64decode(state)))
    rows, *_ = sampler.sample(4)
    assert rows.shape == (4, 2)


def test_old_record_is_read(tmp_path: Path) -> None:
    (tmp_path / "trainer-0000.h5").write_bytes(gzip.decompress((HERE / "record.h5.gz").read_bytes()))
    record = mpidata.RecordedDataset(tmp_path)
    assert len(record) > 20
    for sample in (record[0], record[len(record) - 1]):
        alpha, left = sample["parameters"].tolist()
        assert np.allclose(sample["u"], alpha * left + sample["step"].item())
