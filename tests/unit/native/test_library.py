import ctypes
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mpidata.errors import LibraryError
from mpidata.native import event, library, loading

SOURCE = Path(__file__).parents[3] / "c_api"
TYPES = {
    "mpidata_usage": event.USAGE,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t,
    "double": ctypes.c_double,
    "char": ctypes.c_char,
    "mpidata_statistics": library.Statistics,
}


def declarations():
    headers = [SOURCE / "include" / "mpidata.h"]
    headers += [next(SOURCE.rglob(name)) for name in ("trainer.h", "draw.h", "snapshot.h", "scheduler.h")]
    text = "\n".join(header.read_text() for header in headers)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    found = re.findall(r"(?:int|void|const char \*)\s*\b(mpidata_\w+)\(([^;]*)\);", text)
    return {name: [] if arguments == "void" else arguments.split(",") for name, arguments in found}


@pytest.mark.parametrize(("name", "arguments"), declarations().items())
def test_every_function_of_the_headers_is_bound(name, arguments):
    if name == "mpidata_init":
        name = "mpidata_init_f"
    _, bound = library.SIGNATURES[name]
    assert len(bound) == len(arguments)
    for wanted, declared in zip(bound, arguments, strict=True):
        pointer = "*" in declared or "[" in declared
        assert pointer == (
            wanted in (ctypes.c_char_p, ctypes.c_void_p) or hasattr(wanted, "_type_") and hasattr(wanted, "contents")
        )
        if not pointer:
            assert wanted is TYPES.get(declared.split()[0], ctypes.c_int)


def test_declarations_are_found():
    assert len(declarations()) > 25


@pytest.mark.parametrize(
    ("header", "name", "structure"),
    [
        ("statistics.h", "mpidata_statistics", library.Statistics),
        ("snapshot.h", "mpidata_snapshot", library.Snapshot),
    ],
)
def test_structures_are_those_of_the_headers(header, name, structure):
    text = re.sub(r"/\*.*?\*/", "", next(SOURCE.rglob(header)).read_text(), flags=re.DOTALL)
    body = re.search(r"typedef struct \{([^}]*)\} " + name, text).group(1)
    declared = []
    for kind, field, length in re.findall(r"(\w+) (\w+)(?:\[(\d+)\])?;", body):
        declared.append((field, TYPES[kind] * int(length) if length else TYPES[kind]))
    assert declared == structure._fields_


def test_constants_are_those_of_the_headers():
    text = (SOURCE / "include" / "mpidata.h").read_text() + next(SOURCE.rglob("scheduler.h")).read_text()
    constants = {name: int(value) for name, value in re.findall(r"MPIDATA_(\w+) = (\d+)", text)}
    assert (library.SUCCESS, library.END, library.AGAIN) == tuple(constants[n] for n in ("SUCCESS", "END", "ERR_AGAIN"))
    assert (library.ERR_ARGUMENT, library.ERR_DTYPE) == (constants["ERR_ARGUMENT"], constants["ERR_DTYPE"])
    assert constants["CHECKPOINT"] == library.CHECKPOINT
    assert library.DTYPES == {name.lower(): constants[name] for name in map(str.upper, library.DTYPES)}


def test_events_are_those_of_the_header():
    text = re.sub(r"/\*.*?\*/", "", next(SOURCE.rglob("messages.h")).read_text(), flags=re.DOTALL)
    names = re.findall(r"MPIDATA_EVENT_(\w+)", text)
    for number, name in enumerate(names, start=1):
        read = event.RawEvent(kind=number).read()
        assert type(read).__name__ == name.title().replace("_", "")
    assert len(names) == len(event.READERS)
    failed = next(SOURCE.rglob("failed.h")).read_text()
    assert f"MPIDATA_GIVEN_UP = {event.GIVEN_UP}, MPIDATA_TRY_FAILED = {event.TRY_FAILED}" in failed
    assert f"MPIDATA_LOOP_OVER = {event.LOOP_OVER}" in text


def test_the_structure_of_events_is_that_of_the_header():
    text = re.sub(r"/\*.*?\*/", "", next(SOURCE.rglob("messages.h")).read_text(), flags=re.DOTALL)
    pattern = r"typedef struct \{([^{}]*)union \{(.*?)\n    \};(.*?)\} mpidata_event;"
    before, union, after = re.search(pattern, text, re.DOTALL).groups()
    declared = {
        name: [(field, TYPES[kind]) for kind, field in re.findall(r"(\w+) (\w+);", body)]
        for body, name in re.findall(r"struct \{([^}]*)\} (\w+);", union)
    }
    fields = dict(event.RawEvent._fields_)
    assert {name: structure._fields_ for name, structure in fields.pop("content")._fields_} == declared
    assert list(fields) == [*re.findall(r"(\w+);", before), "text"]
    assert f"char text[{fields['text']._length_}]" in after


def test_a_missing_library_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("MPIDATA_LIBRARY", str(tmp_path / "none.so"))
    with pytest.raises(LibraryError, match="MPIDATA_LIBRARY names .*none.so, which is no file"):
        loading.find()


def test_a_file_that_is_no_library_is_named(monkeypatch, tmp_path):
    path = tmp_path / "libmpidata.so"
    path.write_text("no library")
    monkeypatch.setenv("MPIDATA_LIBRARY", str(path))
    with pytest.raises(LibraryError, match="Cannot load .*libmpidata.so"):
        loading.load.__wrapped__()


def test_a_program_that_unloads_it_keeps_it():
    """MPI_Finalize calls back into it, after a plugin that used it may have been unloaded."""
    script = (
        "import _ctypes, ctypes, pathlib, sys\n"
        "_ctypes.dlclose(ctypes.CDLL(sys.argv[1])._handle)\n"
        "print(sys.argv[1] in pathlib.Path('/proc/self/maps').read_text())\n"
    )
    done = subprocess.run([sys.executable, "-c", script, loading.find().resolve()], stdout=subprocess.PIPE, text=True)
    assert done.stdout == "True\n"


def test_check_raises_the_sentence():
    class Fake:
        def mpidata_last_error(self):
            return b""

        def mpidata_strerror(self, status):
            return b"meaning of %d" % status

    library.check(Fake(), library.SUCCESS)
    with pytest.raises(LibraryError, match="meaning of 7"):
        library.check(Fake(), 7)


def test_import_brings_in_neither_mpi_nor_torch():
    code = "import sys, mpidata; assert not {'mpi4py', 'torch', 'numpy'} & set(sys.modules); print(dir(mpidata))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for name in ("MPIStreamDataset", "init_process_group", "solver", "__version__"):
        assert name in output


def test_lazy_names():
    code = (
        "import mpidata; from mpidata import MPIStreamDataset as D; assert D is mpidata.MPIStreamDataset; "
        "mpidata.solver.simulations; mpidata.init_process_group; import sys; assert 'mpi4py' not in sys.modules\n"
        "try: mpidata.nothing\nexcept AttributeError as error: print(error)"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "module 'mpidata' has no attribute 'nothing'"
