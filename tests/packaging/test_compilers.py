"""The C sources compile without warnings by any compiler, and so does the one-file source in strict programs."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import config

ROOT = Path(__file__).parents[2]
CLANGS = [version for version in range(14, 40) if shutil.which(f"clang-{version}")] or [0]  # 0 if there is none
FOLDERS = [".", "c_api/src", "c_api/include", "launch/parents", "tests/c", "tests/devices"]
STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsyntax-only"]
# In glibc 2.43, as in C23, these return a const pointer for a const text.
CONST_SEARCHES = """
#define _GNU_SOURCE
#include <string.h>
#define AS(text, found) _Generic(1 ? (text) : (void *)1, void *: (found), const void *: (const void *)(found))
#define memchr(text, c, n) AS(text, (memchr)(text, c, n))
#define strchr(text, c) _Generic((text), char *: (strchr)(text, c), const char *: (const char *)(strchr)(text, c))
#define strrchr(text, c) _Generic((text), char *: (strrchr)(text, c), const char *: (const char *)(strrchr)(text, c))
#define strstr(text, s) _Generic((text), char *: (strstr)(text, s), const char *: (const char *)(strstr)(text, s))
#define strpbrk(text, s) _Generic((text), char *: (strpbrk)(text, s), const char *: (const char *)(strpbrk)(text, s))
"""


def check(*command: str | Path) -> None:
    done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stdout + done.stderr


def sources(with_mpi: bool) -> list[Path]:
    files = [file for pattern in ("c_api/src/**/*.c", "launch/**/*.c", "tests/c/*.c") for file in ROOT.glob(pattern)]
    return [file for file in files if (file.parent.name in ("carried", "python")) != with_mpi]


@pytest.fixture(scope="module")
def one_file() -> str:
    return next(word for word in config("--csource") if word.endswith(".c"))


@pytest.mark.full
@pytest.mark.parametrize("version", CLANGS)
def test_sources_compile_without_warnings_with_clang(
    version: int, require: Callable[[str], str], one_file: str
) -> None:
    clang = require(f"clang-{version}" if version else "clang-14")
    mpi = config("--mpicc")[0].rpartition("/bin/")[0] + "/include"
    includes = [f"-I{folder}" for folder in (*FOLDERS, mpi)]
    check(clang, "-std=gnu11", *STRICT, *includes, *sources(with_mpi=True))
    check(clang, "-std=gnu11", *STRICT, *includes, "-DMPIDATA_WITHOUT_MPI", *sources(with_mpi=False))
    check(clang, "-std=c99", "-pedantic", *STRICT, *includes, one_file)


@pytest.mark.parametrize("standard", ["c99", "c11", "gnu17", "gnu2x"])
def test_one_file_source_compiles_in_a_strict_program(
    standard: str, one_file: str, require: Callable[[str], str]
) -> None:
    check(require("gcc"), f"-std={standard}", "-pedantic", "-Wshadow", *STRICT, one_file)


@pytest.mark.full
def test_sources_compile_with_const_preserving_string_searches(
    tmp_path: Path, one_file: str, require: Callable[[str], str]
) -> None:
    (tmp_path / "searches.h").write_text(CONST_SEARCHES)
    words = ["-std=gnu2x", *STRICT, "-include", tmp_path / "searches.h"]
    check(require("gcc"), *words, one_file)
    mpi = config("--mpicc")[0].rpartition("/bin/")[0] + "/include"
    check(require("gcc"), *words, *(f"-I{folder}" for folder in (*FOLDERS, mpi)), *sources(with_mpi=True))
