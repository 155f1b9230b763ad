import ctypes

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
    with pytest.raises(LibraryError, match="MPIDATA_LIBRARY names .*none.so, which is not a file"):
        loading.find()


def test_file_that_is_not_a_library_is_named(monkeypatch, tmp_path):
    path = tmp_path / "libmpidata.so"
    path.write_text("no library")
    monkeypatch.setenv("MPIDATA_LIBRARY", str(path))
    with pytest.raises(LibraryError, match="Cannot load .*libmpidata.so"):
        loading.load.__wrapped__()


def test_check_raises_the_message_of_the_status():
    class Fake:
        def mpidata_last_error(self):
            return b""

        def mpidata_strerror(self, status):
            return b"meaning of %d" % status

    library.check(Fake(), constants.SUCCESS)
    with pytest.raises(LibraryError, match="meaning of 7"):
        library.check(Fake(), 7)
