"""What a trainer restores from a checkpoint, with the same or another number of trainers."""

import dataclasses
from pathlib import Path

import h5py
import pytest
from trainers import RestoringLibrary, plan_of, write_trainer

from mpidata.checkpoint import path_of, received
from mpidata.checkpoint.restore import Restored, restore
from mpidata.checkpoint.trainer_file import Saved, TrainerFile
from mpidata.errors import StreamError
from mpidata.native.constants import DTYPES
from mpidata.run.plan import Field, Plan

# For each of two trainers: buffer (2 unseen first), waiting, retired, validation. Trainer = (simulation + step) mod 2.
PLACES = [
    ([(2, 4), (0, 2), (1, 1), (0, 0), (3, 3)], [(2, 6)], [(1, 3)], [(6, 0), (6, 2)]),
    ([(2, 5), (0, 3), (1, 2), (0, 1)], [(2, 7), (2, 9)], [], [(6, 1)]),
]
# Simulation 0 is complete on both, 1 on the first only, 2 is running; 6, for validation, is complete.
LEDGERS = [
    {0: (4, 4, []), 1: (5, 5, []), 2: (-1, 0, [4, 6, 130]), 3: (-1, 0, [3]), 6: (3, 3, [])},
    {0: (4, 4, []), 1: (5, 0, [0, 2]), 2: (-1, 0, [5, 7, 9]), 6: (3, 3, [])},
]


@pytest.fixture
def old(tmp_path: Path) -> Plan:
    plan = plan_of(tmp_path, 2)
    for trainer in range(2):
        state = {"model": b"state of %d" % trainer}
        write_trainer(plan, trainer, PLACES[trainer], 2, LEDGERS[trainer], state, capacity=10)
    return plan


def with_trainers(old: Plan, trainers: int, index: int, **changes: object) -> tuple[RestoringLibrary, Restored]:
    plan = dataclasses.replace(old, trainers=trainers, world=3 + trainers, **changes)  # type: ignore[arg-type]
    library = RestoringLibrary(plan, index)
    return library, restore(plan, library, index)


def test_same_number_of_trainers_restores_each_from_its_own_file(old: Plan) -> None:
    for index in range(2):
        library, resumed = with_trainers(old, 2, index)
        assert resumed == Restored(12, {"model": Saved(b"state of %d" % index)}, 2)
        assert library.places == [list(place) for place in PLACES[index]]
        state = library.state
        assert (state.batch, state.unseen, state.added, state.capacity) == (12, 2, 40, 10)
        assert tuple(state.random) == (1, 2, 3, 2**64 - 1) and library.stream == 0
        assert (state.statistics.received, state.statistics.bytes) == (10 + index, 90)
        assert library.complete == {0: 4, 6: 3}
        one = {(1, 1), (1, 3)} | {(2, 4), (2, 6), (2, 130)} | {(3, 3)}
        assert library.received == (one if index == 0 else {(1, 0), (1, 2), (2, 5), (2, 7), (2, 9)})


def test_received_returns_the_steps_of_complete_simulations(old: Plan) -> None:
    assert received(path_of(old.run / "checkpoints", 5)).tolist() == [4, -1, -1, -1, -1, -1, 3]


@pytest.mark.parametrize("trainers", [1, 3, 4])
def test_another_number_of_trainers_shares_all_samples(old: Plan, trainers: int) -> None:
    shares = [with_trainers(old, trainers, index)[0] for index in range(trainers)]
    unseen = {(2, 4), (0, 2), (2, 6), (2, 5), (0, 3), (2, 7), (2, 9)}
    to_draw = []
    for index, library in enumerate(shares):
        for place in (0, 1, 3):
            own = [sample for sample in library.places[place] if sample not in unseen]
            assert all(sum(sample) % trainers == index for sample in own)
        assert all(sum(sample) % trainers == index for sample in library.received)
        assert library.complete == {0: 4, 6: 3}
        assert library.stream == (2 << 32) + index and library.state.batch == 12
        assert set(library.places[0][: library.state.unseen]) <= unseen
        # Still to come: samples of a running simulation except those received, equally many per trainer.
        to_draw.append(library.state.unseen - len(library.received))
        assert library.places[1] == [] and library.places[2] == list(PLACES[index % 2][2])
    assert max(to_draw) - min(to_draw) <= 1
    held = [sample for library in shares for place in (0, 3) for sample in library.places[place]]
    wanted = [sample for places in PLACES for place in (0, 1, 3) for sample in places[place]]
    if trainers == 1:  # the buffer has 8 places: 7 for unseen samples, 1 for a seen one
        assert len(shares[0].places[0]) == 8 and shares[0].state.unseen == 7
        assert set(held) < set(wanted)
    else:
        assert sorted(held) == sorted(wanted)
    steps = {(1, 0), (1, 1), (1, 2), (1, 3)} | {(2, step) for step in (4, 5, 6, 7, 9, 130)} | {(3, 3)}
    assert sorted(step for library in shares for step in library.received) == sorted(steps)
    assert sum(library.state.statistics.received for library in shares) == 21


def test_unseen_samples_beyond_the_capacity_wait(old: Plan) -> None:
    library, _ = with_trainers(old, 1, 0, capacity=5)
    assert library.places[0] == [(2, 4), (0, 2), (2, 6), (2, 5), (0, 3)] and library.state.unseen == 5
    assert library.places[1] == [(2, 7), (2, 9)]


def test_smaller_capacity_drops_samples_that_were_drawn_before(old: Plan) -> None:
    library, _ = with_trainers(old, 2, 0, capacity=1)  # plus 2, which relief had added
    assert library.state.capacity == 3 and library.state.unseen == 2
    assert library.places[0] == [(2, 4), (0, 2), (1, 1)]
    assert library.places[1] == [(2, 6)]  # samples that were drawn before make room


@pytest.mark.parametrize("policy", ["fifo", "firo"])
@pytest.mark.parametrize("trainers", [1, 2, 3])
def test_only_a_reservoir_restores_the_count_of_unseen_samples(tmp_path: Path, policy: str, trainers: int) -> None:
    """Other policies would keep the count while samples leave, and the next file would be refused."""
    plan = plan_of(tmp_path, 2, policy=policy)
    for trainer in range(2):  # with such a count, as in files of earlier versions
        write_trainer(plan, trainer, PLACES[trainer], 7, LEDGERS[trainer], {}, capacity=10)
    library, _ = with_trainers(plan, trainers, 0)
    assert library.state.unseen == 0 and library.places[0]


def test_large_files_are_read_in_pieces(old: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpidata.checkpoint.restore._READ_BYTES", 70)
    library, _ = with_trainers(old, 2, 0)
    assert library.places == [list(place) for place in PLACES[0]]
    shares = [with_trainers(old, 3, index)[0] for index in range(3)]
    assert sum(len(library.places[0]) for library in shares) == 12


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"fields": (Field("temperature", "float32", (2, 4)),)}, "has other fields"),
        ({"parameters": ("alpha",)}, "has 2 parameters instead of 1"),
        ({"simulations": 9}, "has 6 simulations and 1 for validation"),
        ({"policy": "fifo"}, "has buffer.policy reservoir instead of fifo"),
        ({"checkpoint": 4}, "000004/trainer-0000.h5 cannot be read"),
    ],
)
def test_a_checkpoint_of_another_job_is_refused(old: Plan, changes: dict[str, object], what: str) -> None:
    with pytest.raises(StreamError, match=f"Cannot resume from the checkpoint.*{what}"):
        with_trainers(old, 2, 0, **changes)


def test_every_dtype_is_restored(tmp_path: Path) -> None:
    fields = tuple(Field(f"of_{dtype}", dtype, (2,)) for dtype in DTYPES if dtype not in ("int8", "uint8"))
    plan = plan_of(tmp_path, 1, fields=fields)
    path = write_trainer(plan, 0, [[(0, 1), (0, 0)], [], [], []], 2)
    library, _ = with_trainers(plan, 1, 0)
    assert library.places[0] == [(0, 1), (0, 0)]
    for other in ({"of_bfloat16": "uint16"}, {"of_uint16": "bfloat16"}, {"of_bool": "uint8"}):
        changed = tuple(dataclasses.replace(field, dtype=other.get(field.name, field.dtype)) for field in fields)
        with pytest.raises(StreamError, match="has other fields"):
            with_trainers(plan, 1, 0, fields=changed)
    with h5py.File(path) as file:  # a byte that is not a bool
        place = file["fields/of_bool"].id.get_offset()
    contents = bytearray(path.read_bytes())
    contents[place] = 7
    path.write_bytes(contents)
    with TrainerFile(path) as damaged:
        assert damaged.rows("fields/of_bool", 0, 1).tobytes() == b"\1\1"


@pytest.mark.parametrize(
    ("changes", "makes_sense"),
    [
        ({"capacity": 1, "plan_capacity": 1, "capacity_in_bytes": 1}, True),
        ({"capacity": 1 << 50, "plan_capacity": 1 << 50, "capacity_in_bytes": 1}, True),
        ({"capacity": 0, "capacity_in_bytes": 1}, False),
        ({"capacity": 1}, False),
        ({"capacity": 1 << 50}, False),
    ],
)
def test_capacity_in_bytes_has_a_wider_valid_range(tmp_path: Path, changes: dict[str, int], makes_sense: bool) -> None:
    path = write_trainer(plan_of(tmp_path, 1), 0, PLACES[0], 2, **changes)
    if not makes_sense:
        with pytest.raises(StreamError, match="make no sense"):
            TrainerFile(path).__enter__()
        return
    with TrainerFile(path) as file:
        assert (file.head.capacity, file.head.capacity_in_bytes) == (changes["capacity"], 1)


def test_damaged_files_are_refused(old: Plan) -> None:
    path = path_of(old.run / "checkpoints", 5) / "trainer-0001.h5"
    contents = path.read_bytes()
    path.write_bytes(contents[:300])
    with pytest.raises(StreamError, match="trainer-0001.h5 cannot be read"):
        with_trainers(old, 2, 0)
    path.write_bytes(b"no file of HDF5")
    with pytest.raises(StreamError, match="trainer-0001.h5 cannot be read"):
        received(path.parent)


@pytest.fixture
def of_the_living(tmp_path: Path) -> Plan:
    """A checkpoint of three trainers, the second of which had died, in a job without solvers' samples."""
    plan = plan_of(tmp_path, 3)
    for trainer in (0, 2):
        write_trainer(plan, trainer, [[], [], [], []], 0, {}, {"model": b"state of %d" % trainer})
    return plan


@pytest.mark.parametrize("trainers", [1, 2, 3])
def test_any_number_of_trainers_resumes_from_the_files_of_the_survivors(of_the_living: Plan, trainers: int) -> None:
    for index in range(trainers):
        library, resumed = with_trainers(of_the_living, trainers, index)
        own = (0, 2)[index % 2]
        assert resumed == Restored(12, {"model": Saved(b"state of %d" % own)}, 2)
        assert library.state.batch == 12 and library.places == [[], [], [], []]
        assert library.stream == (0 if trainers == 2 else (2 << 32) + index)


def test_a_file_under_the_name_of_another_trainer_is_refused(of_the_living: Plan) -> None:
    folder = path_of(of_the_living.run / "checkpoints", 5)
    (folder / "trainer-0002.h5").rename(folder / "trainer-0001.h5")
    with pytest.raises(StreamError, match="trainer-0001.h5"):
        with_trainers(of_the_living, 2, 1)


def test_a_checkpoint_without_files_of_trainers_is_refused(of_the_living: Plan) -> None:
    folder = path_of(of_the_living.run / "checkpoints", 5)
    for path in folder.iterdir():
        path.unlink()
    with pytest.raises(StreamError, match="trainer-0000.h5 cannot be read"):
        with_trainers(of_the_living, 2, 1)


@pytest.mark.parametrize("trainers", [2, 3])
def test_elastic_trainer_restores_which_samples_the_others_hold(old: Plan, trainers: int) -> None:
    """Each sample goes to the trainer that owns its step, so that it is sent again if that trainer dies."""
    undrawn = {(2, 4), (0, 2), (2, 6), (2, 5), (0, 3), (2, 7), (2, 9)}
    validation = {(6, 0), (6, 1), (6, 2)}
    everything = {(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), *((2, step) for step in (4, 5, 6, 7, 9, 130)), (3, 3)}
    held: set[tuple[int, int]] = set()
    for index in range(trainers):
        library, _ = with_trainers(old, trainers, index, trainers_at_least=1)
        own = {sample for sample in undrawn if sum(sample) % trainers == index}
        others = {sample for sample in undrawn | validation if sum(sample) % trainers != index}
        buffer, waiting, _, _ = library.places
        assert {sample for sample in buffer + waiting if sample in undrawn} == own
        assert library.elsewhere == others and library.complete == {0: 4, 6: 3}
        assert library.received >= everything - {(1, 0), (1, 2), (1, 4)} and library.stream == (2 << 32) + index
        held |= own
    assert held == undrawn


def test_checkpoint_written_after_a_trainer_death_restores_all_received_steps(tmp_path: Path) -> None:
    """Trainer 1 of 3 had died: the others' ledgers have the samples that it had trained on, as well as their own."""
    plan = plan_of(tmp_path, 3, trainers_at_least=1)
    ledgers = [{1: (-1, 0, [2, 5, 0, 3]), 2: (7, 7, [])}, {1: (-1, 0, [1, 4, 0, 3]), 2: (7, 7, [])}]
    for trainer, places, ledger in ((0, [[(1, 5)], [], [], []], ledgers[0]), (2, [[(1, 4)], [], [], []], ledgers[1])):
        write_trainer(plan, trainer, places, 1, ledger, by_step=1)
    for trainers, at_least in ((2, 0), (2, 1), (4, 1)):
        for index in range(trainers):
            library, resumed = with_trainers(plan, trainers, index, trainers_at_least=at_least)
            assert resumed.trainers == 2 and library.complete == {2: 7}
            wanted = {(1, step) for step in range(6)}
            if not at_least:
                wanted = {sample for sample in wanted if sum(sample) % trainers == index}
            assert library.received == wanted
