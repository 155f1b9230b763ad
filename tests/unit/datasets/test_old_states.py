"""States saved by commit e88f24a, without random states and contents of parts, can still be resumed."""

import json
import os
from pathlib import Path

import pytest
from both_datasets import MAKERS, network_of_both, write_rows

from mpidata.trainer import loader_access as job
from mpidata.trainer.loader_access import Place

OLD = json.loads((Path(__file__).parent / "old_states.json").read_text())


@pytest.fixture(autouse=True)
def parts(monkeypatch, tmp_path):
    for part, path in enumerate(write_rows(tmp_path)):
        os.utime(path, ns=(10**18 + part, 10**18 + part))
    network = network_of_both(1)
    place = Place(network.trainers[0], 0, 1, 1, 2, 5, lambda name, thing: None)
    monkeypatch.setattr(job, "place", lambda: place)
    yield tmp_path
    network.close()


def batches_of(dataset):
    return [(batch["data"] if isinstance(batch, dict) else batch).tolist() for batch in dataset]


@pytest.mark.parametrize("name", MAKERS)
def test_old_state_in_mid_epoch_resumes_at_its_batch(parts, name):
    dataset = MAKERS[name](parts)
    dataset.load_state_dict(OLD[name]["state"])
    assert dataset.resumed == (1, 2) and batches_of(dataset) == OLD[name]["rest"]


@pytest.mark.parametrize("name", MAKERS)
def test_old_state_after_the_last_batch_resumes_at_the_next_epoch(parts, name):
    dataset = MAKERS[name](parts)
    dataset.load_state_dict(OLD[name]["last"])
    assert dataset.resumed == (1, 0) and batches_of(dataset) == OLD[name]["next"]
