"""HDF5 files from other programs: links, virtual datasets, filters, other contents beside the rows."""

import h5py
import numpy as np
import pytest
from part_files import refused


def test_hdf5_columns_can_be_selected_beside_datasets_of_other_lengths(rows, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file["axis"], file["scalar"] = np.arange(3), np.arange(7), 1.0
    refused(rows, r"a\.h5: .* rows, but .* Name columns of the same length in `columns`")
    assert rows(columns=["x"]) == {"x": [0, 1, 2]}
    refused(rows, r"a\.h5: 'scalar' is a single value", columns=["x", "scalar"])


def test_hdf5_names_follow_links_and_may_begin_with_a_slash(rows, tmp_path):
    with h5py.File(tmp_path / "other.hdf", "w") as file:
        file["far"] = np.arange(3) * 10
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["g/x"] = np.arange(3)
        file["hard"] = file["g/x"]
        file["soft"], file["external"] = h5py.SoftLink("/g/x"), h5py.ExternalLink("other.hdf", "far")
    path = str(tmp_path / "a.h5")
    names = ["/g/x", "g/x", "hard", "soft", "external"]
    assert rows(path, names) == {**dict.fromkeys(names, [0, 1, 2]), "external": [0, 10, 20]}
    assert rows(path) == {"g/x": [0, 1, 2], "external": [0, 10, 20]}  # each dataset once
    refused(rows, r"a\.h5: there is no column 'g/y'. It has 'g/x', 'external'", path, ["g/y"])
    refused(rows, r"a\.h5: 'g' is a group", path, ["g"])
    (tmp_path / "other.hdf").unlink()
    refused(rows, r"a\.h5: 'external' is a broken link", path)
    assert rows(path, ["hard"]) == {"hard": [0, 1, 2]}


def test_hdf5_groups_that_contain_each_other_are_traversed_once(rows, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["g/x"] = np.arange(2)
        file["g/up"] = file["/"]
    assert rows() == {"g/x": [0, 1]}


def test_hdf5_virtual_dataset_with_a_missing_source_file_is_refused(rows, tmp_path):
    with h5py.File(tmp_path / "source.hdf", "w") as file:
        file["x"] = np.arange(1, 4)
    layout = h5py.VirtualLayout((3,), np.int64)
    layout[:] = h5py.VirtualSource("source.hdf", "x", (3,))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_virtual_dataset("x", layout)
    assert rows(str(tmp_path / "a.h5")) == {"x": [1, 2, 3]}
    (tmp_path / "source.hdf").unlink()
    refused(rows, r"a\.h5: 'x' has its rows in .*source\.hdf, which does not exist", str(tmp_path / "a.h5"))


@pytest.mark.parametrize("optional", [False, True])
def test_hdf5_missing_filter_is_named(rows, tmp_path, monkeypatch, optional):
    settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    settings.set_chunk((3,))
    flag = h5py.h5z.FLAG_OPTIONAL if optional else h5py.h5z.FLAG_MANDATORY
    settings.set_filter(h5py.h5z.FILTER_DEFLATE, flag, (4,))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        space = h5py.h5s.create_simple((3,))
        h5py.Dataset(h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_INT64, space, settings))[:] = np.arange(3)
    assert rows() == {"x": [0, 1, 2]}
    monkeypatch.setattr(h5py.h5z, "filter_avail", lambda code: False)
    if optional:  # the rows may be stored without the filter, as here
        assert rows() == {"x": [0, 1, 2]}
    else:
        refused(rows, r"a\.h5: 'x' is compressed with a filter .*: 1 .*hdf5plugin.*HDF5_PLUGIN_PATH")


def test_hdf5_virtual_sources_are_resolved_as_hdf5_does(rows, tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    with h5py.File(tmp_path / "real" / "source.hdf", "w") as file:
        file["x"] = np.arange(1, 4)
    with h5py.File(tmp_path / "real" / "virtual.hdf", "w") as file:
        for name, source in (("x", "x"), ("missing", "none")):
            layout = h5py.VirtualLayout((3,), np.int64)
            layout[:] = h5py.VirtualSource("source.hdf", source, (3,))
            file.create_virtual_dataset(name, layout)
    (tmp_path / "link.h5").symlink_to(tmp_path / "real" / "virtual.hdf")
    assert rows(str(tmp_path / "link.h5"), "x") == {"x": [1, 2, 3]}
    refused(rows, r"link\.h5: 'missing' has its rows in 'none', which is missing in", str(tmp_path / "link.h5"))
