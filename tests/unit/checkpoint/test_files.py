import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from mpidata.checkpoint import newest_valid, numbers, path_of, read_scheduler, remove_unfinished
from mpidata.checkpoint.files import CHECKSUMS, SCHEDULER, digest, trainer_file, trainers_in
from mpidata.errors import MpidataError


def make(checkpoints: Path, number: int, trainers: Sequence[int] = (0, 1)) -> Path:
    folder = path_of(checkpoints, number)
    folder.mkdir(parents=True)
    for trainer in trainers:
        (folder / trainer_file(trainer)).write_bytes(bytes(range(256)) * 50)
    (folder / SCHEDULER).write_text(json.dumps({"tries": [number]}))
    files = {path.name: digest(path)._asdict() for path in folder.iterdir()}
    (folder / CHECKSUMS).write_text(json.dumps({"number": number, "files": files}))
    return folder


def test_missing_folder_has_no_checkpoints(tmp_path: Path) -> None:
    assert newest_valid(tmp_path / "checkpoints") == (0, [])
    assert numbers(tmp_path / "checkpoints") == []


def test_unreadable_checkpoint_folder_raises_an_error(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").touch()
    for look in (numbers, newest_valid):
        with pytest.raises(MpidataError, match=f"Cannot read {tmp_path}/checkpoints: Not a directory. Make it"):
            look(tmp_path / "checkpoints")


def test_newest_complete_checkpoint_is_found(tmp_path: Path) -> None:
    for number in (9, 10, 11):
        make(tmp_path, number)
    (tmp_path / "000012.new").mkdir()
    (tmp_path / "notes").mkdir()
    assert numbers(tmp_path) == [9, 10, 11]
    assert newest_valid(tmp_path) == (11, [])
    assert read_scheduler(path_of(tmp_path, 11)) == {"tries": [11]}
    remove_unfinished(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000009", "000010", "000011", "notes"]


def cut(folder: Path) -> str:
    (folder / trainer_file(1)).write_bytes(bytes(100))
    return "trainer-0001.h5 has 100 bytes instead of 12800"


def flip(folder: Path) -> str:
    contents = bytearray((folder / trainer_file(0)).read_bytes())
    contents[6000] ^= 4
    (folder / trainer_file(0)).write_bytes(contents)
    return "trainer-0000.h5 does not have the contents that were written"


def remove(folder: Path) -> str:
    (folder / SCHEDULER).unlink()
    return "scheduler.json cannot be read: No such file"


def remove_sums(folder: Path) -> str:
    (folder / CHECKSUMS).unlink()
    return "checksums.json cannot be read: No such file"


def cut_sums(folder: Path) -> str:
    text = (folder / CHECKSUMS).read_text()
    (folder / CHECKSUMS).write_text(text[:-10])
    return "checksums.json is damaged"


def list_nothing(folder: Path) -> str:
    (folder / CHECKSUMS).write_text('{"files": {}}')
    return "checksums.json does not list all files"


@pytest.mark.parametrize("harm", [cut, flip, remove, remove_sums, cut_sums, list_nothing])
def test_damaged_checkpoint_is_reported_and_the_previous_one_used(tmp_path: Path, harm) -> None:
    make(tmp_path, 3)
    damaged = make(tmp_path, 4)
    what = harm(damaged)
    number, (problem,) = newest_valid(tmp_path)
    assert number == 3
    assert problem.startswith(f"Checkpoint 4 cannot be used: {what}")
    assert problem.endswith(f"Folder {damaged}. Checkpoint 3 is used instead.")
    harm(path_of(tmp_path, 3))
    number, problems = newest_valid(tmp_path)
    assert number == 0 and len(problems) == 2 and problems[1].endswith("There is no other checkpoint to use.")


def test_missing_or_invalid_scheduler_state_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MpidataError, match="Cannot read .*scheduler.json.*resume from the one before"):
        read_scheduler(tmp_path)
    (tmp_path / SCHEDULER).write_text("[1]")
    with pytest.raises(MpidataError, match="holds no JSON object"):
        read_scheduler(tmp_path)


def test_checkpoint_of_the_surviving_trainers_is_valid(tmp_path: Path) -> None:
    folder = make(tmp_path, 3, trainers=[12345, 2])
    for name in ("trainer-0000.h5.new", "trainer-07.h5", "a-trainer-0008.h5"):
        (folder / name).touch()
    assert newest_valid(tmp_path) == (3, []) and trainers_in(folder) == [2, 12345]
    (folder / trainer_file(2)).unlink()
    assert newest_valid(tmp_path)[1][0].startswith("Checkpoint 3 cannot be used: trainer-0002.h5 cannot be read")


def test_checkpoint_without_trainer_files_is_invalid(tmp_path: Path) -> None:
    make(tmp_path, 3, trainers=[])
    assert newest_valid(tmp_path)[1][0].startswith(
        "Checkpoint 3 cannot be used: checksums.json does not list all files"
    )
