"""Tables as spreadsheets and scripts write them: read if unambiguous, else refused with a fix."""

from pathlib import Path

import pytest

from mpidata.config import Job, load_job
from mpidata.errors import JobFileError
from mpidata.sampling.drawing import draw_parameters

TEXT = """\
trainers: {program: [python, -c, pass]}
solvers: {program: [python, -c, pass]}
parameters: {sampler: file, path: d.csv}
fields: {u: {shape: [4]}}
"""


def load(folder: Path, table: bytes, *overrides: str) -> Job:
    (folder / "job.yaml").write_text(TEXT)
    (folder / "d.csv").write_bytes(table)
    return load_job(folder / "job.yaml", overrides)


@pytest.mark.parametrize(
    "table",
    [
        b"\xef\xbb\xbfalpha,beta\r\n1,2\r\n3,4\r\n\r\n,\r\n",
        b"alpha,beta\r1,2\r3,4\r",
        b"alpha,beta,\n1,2,\n3,4,\n",
        b"alpha,beta,,\n1,2\n3,4,,\n",
        b"alpha,beta\n1,2,\n3,4,\n",
        b'"alpha", "beta"\n"1", "2"\n\n3,4',
        b",\n\nalpha,beta\n1,2\n3,4\n",
    ],
)
def test_plain_tables_are_read(tmp_path: Path, table: bytes) -> None:
    assert draw_parameters(load(tmp_path, table)).tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (b"alpha;beta\n1,5;2\n", "separated by semicolons, and its numbers have decimal commas. Save it"),
        (b"alpha;beta\n1,5;2\n", "pandas.read_csv(path, sep=';', decimal=',').to_csv(path, index=False)."),
        (b"alpha;beta\n1;2\n", "separated by semicolons. Save it"),
        (b"alpha;beta\n1.5;2\n", "separated by semicolons. Save it"),
        (b"alpha\tbeta\n1\t2\n", r"separated by tabs. Save it with commas between cells"),
        (b"alpha  beta\n1 2\n", "separated by blanks."),
        (b"# made\nalpha,beta\n1,2\n", "line 1 is a comment: '# made'. Remove it"),
        (b"alpha,beta\n1,2\n# half\n3,4\n", "line 3 is a comment: '# half'. Remove it"),
        (b"alpha,beta\n# a,b\n1,2\n", "column 'alpha' is '# a'. Remove the line if it is a comment."),
        (b"sep=;\nalpha;beta\n1;2\n", "its first line is 'sep=;', which only Excel reads. Remove it."),
        (b"alpha\n1,5\n", "has 2 cells, not 1. If its numbers have decimal commas, write points."),
        (b'alpha\n"1,5"\n', "is '1,5'. Write it with a decimal point, and without separators of thousands."),
        (b"alpha\n1\n#DIV/0!\n", "is '#DIV/0!'. This is an error of the spreadsheet: correct its formula"),
        (b"alpha\n2\n1_0\n", "is '1_0'. Put a finite number there."),
        (b'alpha\n"1.000,5"\n', "is '1.000,5'. Write it with a decimal point"),
        (b"alpha,beta,\n1,2,x\n", "row 1 (line 2) has 3 cells, not 2."),
        (b",alpha\n0,1\n", "column '': it has no name. Rename it"),
        (b"\xff\xfea\x00", "it is text in UTF-16. Save it as CSV in UTF-8."),
        (b"a\x00b\x00", "line 1 has a NUL, as in UTF-16 text."),
        (b"PK\x03\x04....", "it is a spreadsheet (or another zip file), not a table in text. Save it as CSV"),
        (
            b"case,alpha\nrun_a,1\nrun_b,2\n",
            "column 'case' holds texts: run_a, run_b. Leave it out by naming the columns",
        ),
    ],
)
def test_ambiguous_tables_are_refused_with_a_fix(tmp_path: Path, table: bytes, said: str) -> None:
    with pytest.raises(JobFileError) as error:
        load(tmp_path, table)
    assert said in str(error.value)


@pytest.mark.parametrize("table", [b"case,alpha\n#1,2\n", b"alpha, note; see below\n2,x\n", b"'a b',alpha\n1,2\n"])
def test_unused_columns_of_a_table_are_ignored(tmp_path: Path, table: bytes) -> None:
    assert draw_parameters(load(tmp_path, table, "parameters.space={alpha: null}")).tolist() == [[2.0]]


def test_text_column_is_read_as_indices_of_its_choices(tmp_path: Path) -> None:
    space = "parameters.space={mesh: {choices: [coarse, fine]}, alpha: null, model: {value: sst}}"
    job = load(tmp_path, b"mesh,alpha\nfine,1\ncoarse,2\n", space)
    assert draw_parameters(job).tolist() == [[1.0, 1.0, 0.0], [0.0, 2.0, 0.0]]
    for cell in (b"fin", b"0", b""):
        with pytest.raises(JobFileError, match="column 'mesh' is .*. Put one of its texts there: coarse, fine."):
            load(tmp_path, b"mesh,alpha\nfine,1\n" + cell + b",2\n", space)
