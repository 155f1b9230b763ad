import ctypes
import subprocess
import sys

import pytest
from c_headers import declarations

from mpidata.errors import LibraryError
from mpidata.native import constants, library, loading

POINTERS = {ctypes.c_char_p, ctypes.c_void_p}
NUMBERS = {
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t,
    "double": ctypes.c_double,
}  # all others are an int


@pytest.mark.parametrize(("name", "signature"), {**library.SIGNATURES, **library.CARRIED}.items())
def test_every_function_is_bound_as_its_header_declares_it(name, signature):
    _, bound = signature
    declared = declarations()[name].arguments
    assert len(bound) == len(declared)
    for wanted, text in zip(bound, declared, strict=True):
        pointer = "*" in text or "[" in text
        assert pointer == (wanted in POINTERS or hasattr(wanted, "_type_") and hasattr(wanted, "contents"))
        if not pointer:
            assert wanted is NUMBERS.get(text, ctypes.c_int)


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

    library.check(Fake(), constants.SUCCESS)
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
