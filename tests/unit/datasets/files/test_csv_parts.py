"""CSV files as other programs write them: each column gets the type that fits all of its rows."""

import numpy as np
import pytest
from part_files import refused


def test_csv_column_has_a_type_that_fits_all_rows(rows, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "1,2\n" * 500_000 + "1.5,2\n")  # the fraction is in the third block of 1 MB
    got = rows()
    assert got["x"][-1] == 1.5 and got["y"][-1] == 2 and len(got["x"]) == 500_001


def test_csv_lines_may_be_longer_than_a_block(rows, tmp_path, monkeypatch):
    monkeypatch.setattr("mpidata.loading.formats.text._BLOCK_BYTES", 1 << 10)
    names = [f"column{i}" for i in range(2000)]  # 22 KB: more than 16 blocks
    (tmp_path / "a.csv").write_text(",".join(names) + "\n" + ",".join(map(str, range(len(names)))) + "\n")
    assert rows(columns=["column1999"]) == {"column1999": [1999]}


@pytest.mark.parametrize("text", ["nan", "NaN", "-nan", "NAN"])
def test_csv_nan_is_a_number_and_an_empty_cell_is_not(rows, tmp_path, text):
    (tmp_path / "a.csv").write_text(f"x,y\n1.5,2\n{text},3\ninf,4\n")
    got = rows()["x"]
    assert got[0] == 1.5 and np.isnan(got[1]) and got[2] == np.inf
    (tmp_path / "a.csv").write_text("x,y\n1.5,2\n,3\n")
    refused(rows, r"a\.csv: column 'x' has nulls \(row 1\)")


def test_csv_whole_numbers_are_exact_or_refused(rows, tmp_path):
    path, great = tmp_path / "a.csv", 2**64 - 1
    path.write_text(f"x\n{great}\n{2**53 + 1}\n7\n")
    assert rows() == {"x": [great, 2**53 + 1, 7]}
    path.write_text(f"x\n{great}\n-1\n")
    refused(rows, rf"a\.csv: column 'x' has the whole number {great} in row 0")
    path.write_text(f"x\n1.5\n{2**53 + 1}\n")
    refused(rows, rf"a\.csv: column 'x' has the whole number {2**53 + 1} in row 1")
    path.write_text("x\n1.5e300\n18014398509481984\n")
    assert rows() == {"x": [1.5e300, 2.0**54]}


def test_csv_without_a_header_line_is_refused(rows, tmp_path):
    (tmp_path / "a.csv").write_text("0.5,1.5\n2.5,3.5\n")
    refused(rows, r"a\.csv: its first line has numbers, 0\.5, 1\.5, instead of the names")
    (tmp_path / "a.csv").write_text("0,1,2\n5,6,7\n")  # as pandas numbers columns
    assert rows() == {"0": [5], "1": [6], "2": [7]}


@pytest.mark.parametrize(
    ("cells", "expected", "dtype"),
    [
        (["0xFFFFFFFFFFFFFFFF", "5"], [2**64 - 1, 5], "uint64"),
        (["0x10", "5"], [16, 5], "int64"),
        (["+12", "-3"], [12, -3], "int64"),
        (["9223372036854775808", "1"], [2**63, 1], "uint64"),
        (["+9007199254740993", "-3"], [2**53 + 1, -3], "int64"),
        (["+1.5", "2"], [1.5, 2.0], "float64"),
        (["1.5e18", "+2"], [1.5e18, 2.0], "float64"),
    ],
)
def test_csv_numbers_of_any_sign_and_size_get_one_dtype(job, tmp_path, cells, expected, dtype):
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{cell},1\n" for cell in cells))
    (batch,) = job(1).dataset(0, tmp_path, 9, shuffle=None)
    assert batch["x"].tolist() == expected and str(batch["x"].dtype) == f"torch.{dtype}"


def test_csv_cells_that_fit_no_type_are_reported_with_their_row(rows, tmp_path):
    for cell in ("9223372036854775808", "1" * 100_000):
        (tmp_path / "a.csv").write_text(f"x\n-1\n{cell}\n")
        refused(rows, r"a\.csv: column 'x' has the whole number \d+ in row 1")
    (tmp_path / "a.csv").write_text("x\n1.5\n\n3.5\n")
    refused(rows, r"a\.csv: column 'x' has nulls \(row 1\)")
