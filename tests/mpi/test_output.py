"""Programs that only write files: what they write is streamed while they run, and removed."""

import sys
import types
from pathlib import Path

import h5py
import numpy as np
import pytest
from jobs import DRAIN, PROGRAMS, JobFolder, python

from mpidata.config import load_job
from mpidata.dtypes import dtype_name, mark_dataset
from mpidata.errors import JobFileError, MpidataError
from mpidata.solver import output
from mpidata.solver.output import read
from mpidata.solver.output_files import Files, WrongFilesError
from mpidata.solver.renames import Renames

WRITES = python("outputs/writes_npy.py")


@pytest.mark.full
def test_files_of_an_unchanged_program_are_streamed(folder: JobFolder) -> None:
    (folder.path / "case").mkdir()
    (folder.path / "case" / "input.txt").write_text("{{alpha}}")
    folder.job(
        trainers=DRAIN,
        solvers={
            "groups": 2,
            "carried": {},
            "lifetime": "simulation",
            "program": [*WRITES, str(folder.path), "{simulation}"],
            "case": {"folder": "case", "fill": ["input.txt"], "keep": "failed"},
            "output": {"files": "u_*.npy", "time": "_t([0-9.]+)[.]npy"},
        },
    )
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.summary["simulations"] == {"requested": 4, "complete": 4, "failed": 0}
    assert result.summary["samples"]["received"] == 48
    assert result.run is not None
    assert sorted(path.name for path in (result.run / "failed" / "1-1").iterdir()) == ["input.txt", "u_11_t2.75.npy"]


def test_files_are_read_in_numeric_order_and_the_last_one_at_the_end(tmp_path: Path) -> None:
    for step in (10, 9, 2):
        (tmp_path / f"u_{step}.npy").touch()
        (tmp_path / f"v_{step}.npy").touch()
    (tmp_path / "v_10.npy").unlink()
    one, both = Files({"": "u_*.npy"}, tmp_path), Files({"u": "u_*.npy", "v": "v_*.npy"}, tmp_path)
    assert [files[""].name for files in one.complete(False)] == ["u_2.npy", "u_9.npy"]
    one = Files({"": "u_*.npy"}, tmp_path)
    assert [files[""].name for files in one.complete(True)] == ["u_2.npy", "u_9.npy", "u_10.npy"]
    assert [files["v"].name for files in both.complete(False)] == ["v_2.npy"]


def test_file_renamed_to_its_final_name_is_complete(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    here, below = Files({"": "u_*.npy"}, tmp_path), Files({"": "out/u_*.npy"}, tmp_path)
    for files, folder in ((here, tmp_path), (below, tmp_path / "out")):
        (folder / "u_0.npy").touch()
        assert list(files.complete(False)) == []  # the folder is watched from now on
        (folder / "part").touch()
        (folder / "part").rename(folder / "u_1.npy")
        found = list(files.complete(False))
        assert [one[""].name for one in found] == ["u_0.npy", "u_1.npy"]
        for one in found:
            files.remove(one)
        (folder / "u_1.npy").touch()
        assert list(files.complete(False)) == []


def test_folders_are_sorted_by_the_times_in_their_names(tmp_path: Path) -> None:
    for name in ("10", "0.5", "0.25", "2"):
        (tmp_path / "rank0" / name).mkdir(parents=True)
        (tmp_path / "rank0" / name / "T").touch()
    found = list(Files({"": "rank0/[0-9]*/T"}, tmp_path).complete(True))
    assert [files[""].parent.name for files in found] == ["0.25", "0.5", "2", "10"]


@pytest.mark.parametrize(
    ("pattern", "time", "names"),
    [
        ("s_*.txt", None, ["s_5e-05.txt", "s_1.5e-4.txt", "s_5.000e-01.txt", "s_1.000e+00.txt", "s_20.txt"]),
        ("p0/0.*/T", None, ["p0/0.05/T", "p0/0.1/T", "p0/0.15/T", "p0/0.5/T"]),
        ("p0/*/T", None, ["p0/5e-05/T", "p0/0.0001/T", "p0/0.00015/T", "p0/1/T"]),
        ("T2/out-*.dat", None, ["T2/out-2.dat", "T2/out-10.dat"]),  # a hyphen is not a sign
        ("out.*", None, ["out.5", "out.10"]),
        ("s_*.npy", None, ["s_-10.npy", "s_-5.npy", "s_0.npy", "s_.5.npy", "s_1.5.npy"]),
        ("*.npy", None, ["2.5D-01.npy", "5.0D-01.npy", "1.0D+00.npy"]),
        ("s_*", None, ["s_1700000000000000001", "s_1700000000000000002", "s_1700000000000000003"]),
        ("s_*", None, ["s_a", "s_b", "s_c"]),
        ("s_*.npz", r"_t([-+0-9.e]+)", ["s_9_t-1.5.npz", "s_8_t-1.npz", "s_7_t0.npz", "s_1_t1e-1.npz"]),
    ],
)
def test_files_are_sorted_by_their_numbers_or_times(
    tmp_path: Path, pattern: str, time: str | None, names: list[str]
) -> None:
    for name in sorted(names, reverse=True):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = Files({"": pattern}, tmp_path, time).complete(True)
    assert [str(files[""].relative_to(tmp_path)) for files in found] == names


def test_files_of_one_step_must_have_the_same_number(tmp_path: Path) -> None:
    both = {"u": "CO2_*.npy", "e": "e_*.npy"}
    for step in (1, 2, 3, 4):
        (tmp_path / f"CO2_{step}.npy").touch()
    (tmp_path / "e_2.npy").touch()
    (tmp_path / "e_4.npy").touch()
    assert list(Files(both, tmp_path).complete(False)) == []
    with pytest.raises(WrongFilesError, match=r"wrote CO2_1\.npy, but not one file with its number for each of 'CO2_"):
        list(Files(both, tmp_path).complete(True))
    for step in (1, 3):
        (tmp_path / f"e_{step}.npy").touch()
    assert len(list(Files(both, tmp_path).complete(True))) == 4
    (tmp_path / "e_4.npy").unlink()
    with pytest.raises(WrongFilesError, match=r"wrote CO2_4\.npy, but not one"):
        list(Files(both, tmp_path).complete(True))


@pytest.mark.parametrize("again", ["u_1.npy", "u_01.npy", "u_0.npy"])
def test_file_written_out_of_order_is_refused(tmp_path: Path, again: str) -> None:
    files = Files({"": "u_*.npy"}, tmp_path)
    for name in ("u_0.npy", "u_1.npy", "u_2.npy"):
        (tmp_path / name).touch()
    for found in files.complete(False):
        files.remove(found)
    (tmp_path / again).touch()
    with pytest.raises(WrongFilesError, match=f"wrote {again} after u_1.npy, but its number, time or name comes first"):
        list(files.complete(True))


def test_rewritten_file_without_a_number_is_another_step(tmp_path: Path) -> None:
    files = Files({"": "now.npy"}, tmp_path)
    for _ in range(3):
        (tmp_path / "now.npy").touch()
        assert len(list(files.complete(True))) == 1
        files.remove({"": tmp_path / "now.npy"})


def test_folder_is_removed_after_it_was_read(tmp_path: Path) -> None:
    (tmp_path / "step1" / "parts").mkdir(parents=True)
    files = Files({"": "step*"}, tmp_path)
    for found in files.complete(True):
        files.remove(found)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("inotify", [False, True])
def test_unread_file_removed_by_the_program_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renamed: bool, inotify: bool
) -> None:
    if not inotify:  # as on NFS or Lustre
        monkeypatch.setattr(Renames, "watch", lambda *_: None)
    files = Files({"": "u_*.npy"}, tmp_path)

    def write(number: int) -> None:
        (tmp_path / "new").touch()
        (tmp_path / "new").rename(tmp_path / f"u_{number}.npy") if renamed else (tmp_path / f"u_{number}.npy").touch()

    for number in (0, 1):
        write(number)
    for found in files.complete(ended=False):
        files.remove(found)
    for number in (2, 3, 4):
        write(number)
    for number in (1, 2):
        (tmp_path / f"u_{number}.npy").unlink(missing_ok=True)
    gone = "u_2.npy" if renamed and inotify else "u_1.npy"  # the file before was complete
    assert list(files.complete(ended=False)) == []
    with pytest.raises(WrongFilesError, match=f"^removed {gone} before it was read. Let it keep all its files"):
        list(files.complete(ended=False))


def test_renamed_file_is_not_reported_as_removed(tmp_path: Path) -> None:
    files = Files({"": "u_*"}, tmp_path)
    (tmp_path / "u_0").touch()
    (tmp_path / "u_1.part").touch()
    for found in files.complete(ended=False):
        assert found[""].name == "u_0"
        (tmp_path / "u_0").unlink()  # the program itself removes it after it was read
        files.remove(found)
    (tmp_path / "u_1.part").rename(tmp_path / "u_1")
    assert [found[""].name for found in files.complete(ended=True)] == ["u_1"]


@pytest.mark.parametrize("name", ["u_1.npy", "u_t.npy", "u_tnan.npy"])
def test_a_name_without_a_time_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(WrongFilesError, match=f"wrote {name}, whose name has no time for 'solvers.output.time'"):
        list(Files({"": "u_*.npy"}, tmp_path, "_t([0-9.na]*)").complete(True))


def test_built_in_readers_read_npy_npz_and_hdf5_files(tmp_path: Path) -> None:
    u, v = np.arange(6.0).reshape(2, 3), np.arange(4)
    np.save(tmp_path / "a.npy", u)
    np.savez(tmp_path / "b.npz", u=u, v=v, w=v)
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["u"], file["v"] = u, v
    for name in ("b.npz", "c.h5"):
        fields = read({"": tmp_path / name}, ["u", "v"])
        assert sorted(fields) == ["u", "v"] and (fields["u"] == u).all() and (fields["v"] == v).all()
    assert (read({"u": tmp_path / "a.npy"}, ["u", "v"])["u"] == u).all()
    with pytest.raises(MpidataError, match="has one array, but the job has the fields u, v"):
        read({"": tmp_path / "a.npy"}, ["u", "v"])
    for name in ("a.npy", "b.npz", "c.h5"):
        (tmp_path / f"cut{name[1:]}").write_bytes((tmp_path / name).read_bytes()[:100])
        with pytest.raises(WrongFilesError, match=f"wrote cut{name[1:]}, which cannot be read: "):
            read({"": tmp_path / f"cut{name[1:]}"}, ["u"])
    np.save(tmp_path / "objects.npy", np.array([{}], object))
    with pytest.raises(WrongFilesError, match="wrote objects.npy, which cannot be read: Object arrays"):
        read({"": tmp_path / "objects.npy"}, ["u"])
    for name, held in (("b.npz", "u, v, w"), ("c.h5", "u, v")):
        with pytest.raises(WrongFilesError, match=f"wrote {name}, which has no 'x', but {held}"):
            read({"": tmp_path / name}, ["u", "x"])
    with pytest.raises(MpidataError, match="is not an npy, npz or HDF5 file"):
        read({"": tmp_path / "d.dat"}, ["u"])


def test_bfloat16_is_read_from_all_formats(tmp_path: Path) -> None:
    bits = np.array([0x3FC0, 0xC000], np.uint16)
    raw = bits.view("V2")  # as ml_dtypes stores it
    np.save(tmp_path / "a.npy", raw)
    np.savez(tmp_path / "b.npz", u=raw)
    with h5py.File(tmp_path / "c.h5", "w") as raw_file, h5py.File(tmp_path / "d.h5", "w") as file:
        raw_file["u"] = raw
        file["u"] = bits
        mark_dataset(file["u"], "bfloat16")
    for name in ("a.npy", "b.npz", "c.h5", "d.h5"):
        found = read({"": tmp_path / name}, ["u"])["u"]
        assert dtype_name(found.dtype) == "bfloat16" and found.tobytes() == bits.tobytes()


def test_reader_can_yield_several_steps_of_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "all.txt").write_text("0.5\n0.75\n")
    monkeypatch.syspath_prepend(str(PROGRAMS))
    settings = {"reader": "outputs.reads_lines:fields"}
    simulation = types.SimpleNamespace(id=3)
    found = list(output._samples({"": tmp_path / "all.txt"}, 0, simulation, settings, ["u"]))
    assert found == [(0.5, {"u": 3.5}), (0.75, {"u": 3.75})]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "return None",
            r"own:fields \(solvers.output.reader\) must yield \(time, \{field: array\}\), but yielded None",
        ),
        ("yield {'u': 1}", r"must yield \(time, \{field: array\}\), but yielded \{'u': 1\}"),
        ("yield 0.5, 1, 2", r"must yield \(time, \{field: array\}\), but yielded \(0.5, 1, 2\)"),
        ("raise SystemExit(0); yield", r"own:fields \(solvers.output.reader\) has called exit\(0\)"),
    ],
)
def test_mistakes_of_a_reader_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, sentence: str) -> None:
    monkeypatch.setitem(sys.modules, "own", module := types.ModuleType("own"))
    exec(f"def fields(path, simulation):\n    {body}\n", module.__dict__)
    with pytest.raises((TypeError, RuntimeError), match=sentence):
        list(output._samples({"": tmp_path}, 0, types.SimpleNamespace(id=3), {"reader": "own:fields"}, ["u"]))


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ({"files": "../u_*.npy"}, "which is outside the folder of the simulation."),
        ({"files": "/tmp/u_*.npy"}, "which is outside the folder of the simulation."),
        ({"files": "step_**.npy"}, "but '**' only matches whole folders: '**/step_*.npy'. Correct it."),
        ({"files": "step_*.txt"}, "but without a reader only .npy, .npz, .h5, .hdf5 are read. Name a function"),
        ({"files": "u_*.npy", "success": [300]}, "'solvers.output.success[0]' is 300."),
        ({"files": "in*"}, "input.txt, a file that the program has not written. Correct the pattern"),
        (
            {"files": {"v": "u_*.npy"}},
            "'solvers.output.files' has patterns for v, but the fields are u. Give one for each.",
        ),
        ({"files": ""}, "'solvers.output.files' is ''. It must be a text, or mapping from field to text"),
        ({"files": "u_*.npy", "reader": "nowhere:fields"}, "but there is no module 'nowhere' in"),
        ({"files": "u_*.npy", "success": []}, "'solvers.output.success' is []. It must be a list of whole numbers."),
    ],
)
def test_mistakes_in_output_settings_are_reported_before_the_start(
    folder: JobFolder, output: dict[str, object], sentence: str
) -> None:
    (folder.path / "case").mkdir()
    (folder.path / "case" / "input.txt").write_text("{{alpha}}")
    folder.job(
        trainers=DRAIN,
        solvers={
            "carried": {},
            "lifetime": "simulation",
            "program": WRITES,
            "case": {"folder": "case"},
            "output": output,
        },
    )
    with pytest.raises(JobFileError) as caught:
        load_job(folder.path / "job.yaml")
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.full
@pytest.mark.parametrize(
    ("output", "how"),
    [
        ({"files": "u_*.npy", "reader": "outputs.raises:fields"}, "raised ValueError: as asked (raises.py line 5)"),
        ({"files": "u_*.npy"}, "wrote u_2_t0.5.npy, which cannot be read: "),
        ({"files": "w_*.npy"}, "wrote no file of 'w_*.npy'"),
        ({"files": "u_*.npy", "time": "t=([0-9])"}, ".npy, whose name has no time for 'solvers.output.time'"),
    ],
)
def test_cause_of_a_failed_simulation_is_reported(folder: JobFolder, output: dict[str, str], how: str) -> None:
    (folder.path / "case").mkdir()
    (folder.path / "case" / "input.txt").write_text("{{alpha}}")
    folder.job(
        trainers=DRAIN,
        solvers={
            "carried": {},
            "lifetime": "simulation",
            "retries": 0,
            "program": [*WRITES, str(folder.path), "{simulation}", "cut"],
            "case": {"folder": "case", "fill": ["input.txt"]},
            "output": output,
        },
    )
    result = folder.run()
    assert result.status == 1 and "3 simulations were set aside, and none is complete" in result.summary["error"]
    assert how in result.summary["error"], result.logs()
