"""Bad job files for trainers that may die: one message for each mistake."""

from pathlib import Path

import pytest
from bad_job_files import GOOD, problems

from mpidata.config import load_job
from mpidata.errors import JobFileError

ELASTIC = """\
trainers: {program: [python, train.py], ranks: 3, elastic: true}
loaders: {ranks: 1}
"""


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        (
            "trainers.ranks=1",
            "'trainers.elastic' needs more trainers than 'at_least', 1, but 'trainers.ranks' is 1. Raise "
            "'trainers.ranks'; instead of this, you can remove the key.",
        ),
        (
            "trainers.elastic={at_least: 3}",
            "needs more trainers than 'at_least', 3, but 'trainers.ranks' is 3. Raise 'trainers.ranks', or",
        ),
        ("launch.with=srun", "is given, but 'launch.with' is 'srun': a death ends the job, because srun has no ULFM."),
        ("slurm.template=heterogeneous", "but 'slurm.template' is 'heterogeneous', which srun starts: a death ends"),
        ("trainers.elastic={at_least: 0}", "'trainers.elastic.at_least' is 0. It must be a whole number, at least 1."),
        ("trainers.elastic={exceptions: keep}", "'trainers.elastic.exceptions' is 'keep'. It must be"),
        ("trainers.elastic={at_most: 2}", "unknown key 'trainers.elastic.at_most'. Did you mean 'at_least'?"),
        ("trainers.elastic=2", "'trainers.elastic' is 2. It must be"),
        ("trainers.spares=-1", "'trainers.spares' is -1."),
        ("trainers.timeout_s=0", "'trainers.timeout_s' is 0. It must be a number, more than 0."),
        (
            "launch.fault_tolerance=false",
            "'trainers.elastic' is given, but 'launch.fault_tolerance' is false, so a death ends the job. Remove one "
            "of them.",
        ),
    ],
)
def test_each_mistake_about_elastic_trainers_gives_one_message(folder: Path, setting: str, sentence: str) -> None:
    lines = problems(folder, ELASTIC, setting)
    assert any(line.startswith("job.yaml: ") and sentence in line for line in lines), lines
    assert len(lines) == 1, lines


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ("journal=true", "'journal' cannot be combined"),
    ],
)
def test_journal_with_elastic_trainers_of_a_stream_is_refused(folder: Path, setting: str, what: str) -> None:
    text = GOOD.replace("train.py]}", "train.py], ranks: 3, elastic: true}")
    (line,) = problems(folder, text, setting)
    sentence = f"{what} with 'trainers.elastic' if 'solvers' send the samples. Remove one of the two."
    assert line.startswith(f"job.yaml: {sentence}")
    load_job(folder / "job.yaml", [])


@pytest.mark.parametrize("section", ["solvers", "loaders"])
def test_spawned_groups_and_loaders_are_accepted_with_elastic_trainers(folder: Path, section: str) -> None:
    (folder / "job.yaml").write_text(GOOD.replace("train.py]}", "train.py], ranks: 3, elastic: true}"))
    job = load_job(folder / "job.yaml", ["loaders.ranks=1", f"{section}.start=spawn"])
    assert getattr(job, section).start == "spawn"


def test_loaders_are_accepted_with_elastic_trainers_of_a_stream(folder: Path) -> None:
    (folder / "job.yaml").write_text(GOOD.replace("train.py]}", "train.py], ranks: 3, elastic: true}"))
    assert load_job(folder / "job.yaml", ["loaders.ranks=1"]).loaders is not None


@pytest.mark.parametrize(
    ("elastic", "at_least"), [("false", 0), ("true", 1), ("{}", 1), ("{at_least: 2}", 2), ("{at_least: 1}", 1)]
)
def test_elastic_key_sets_the_least_number_of_trainers(folder: Path, elastic: str, at_least: int) -> None:
    (folder / "job.yaml").write_text(ELASTIC.replace("elastic: true", f"elastic: {elastic}"))
    assert load_job(folder / "job.yaml").trainers.at_least == at_least


def test_spare_trainers_without_elastic_are_refused(folder: Path) -> None:
    (folder / "job.yaml").write_text(ELASTIC.replace("elastic: true", "spares: 2"))
    with pytest.raises(
        JobFileError, match="'trainers.spares' is 2, but without 'trainers.elastic' the death of a trainer"
    ):
        load_job(folder / "job.yaml")


def test_spare_trainers_are_ranks_of_the_job(folder: Path) -> None:
    (folder / "job.yaml").write_text(ELASTIC.replace("elastic: true", "elastic: true, spares: 2"))
    job = load_job(folder / "job.yaml")
    assert job.world_size == 1 + 3 + 2 + job.loaders.ranks and "3 trainers, 2 spares" in job.layout
