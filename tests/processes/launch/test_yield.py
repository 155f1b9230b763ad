"""What mpidata-rank preloads into solvers: in MPI_Finalize, sched_yield sleeps; no MPI."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from launch_job import clean_environment, make_plan

from mpidata.native.build_flags import carrier_program

# As UCX, which begins before all that is preloaded.
_LIBRARY = """
#include <sched.h>
#include <unistd.h>
extern int maps;
__attribute__((constructor)) static void begin(void) {
    if (sched_yield() || maps) _exit(1);
}
"""
# Writes the flags into the page, and ends with 40 and the number of sleeps in two calls.
_PROGRAM = """
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static int sleeps;
int maps;
void *mmap(void *at, size_t size, int protection, int flags, int file, long offset) {
    return maps++, (void *)syscall(SYS_mmap, at, size, protection, flags, file, offset);
}
int nanosleep(const struct timespec *time, struct timespec *rest) {
    return (void)time, (void)rest, sleeps++, 0;
}
int main(int argc, char **argv) {
    const unsigned flags = (unsigned)atoi(argv[argc - 1]);
    if (pwrite(atoi(getenv("MPIDATA_PULSE")), &flags, sizeof flags, 4) < 0) return 1;
    if (sched_yield() || sched_yield()) return 2;
    return 40 + sleeps;
}
"""


@pytest.mark.parametrize(("flags", "sleeps"), [(1, 0), (1 | 4, 2)], ids=["works", "finalizes"])
def test_a_yield_in_finalize_sleeps(tmp_path: Path, shim: Path, flags: int, sleeps: int) -> None:
    (tmp_path / "library.c").write_text(_LIBRARY)
    (tmp_path / "program.c").write_text(_PROGRAM)
    library = tmp_path / "library.so"
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "library.c", "-o", library], check=True)
    link = ["-Wl,--no-as-needed", library, f"-Wl,-rpath,{tmp_path}"]
    subprocess.run(["cc", tmp_path / "program.c", "-o", tmp_path / "program", *link], check=True)
    program = [str(tmp_path / "program"), str(flags)]
    run = make_plan(tmp_path, {"solver": program}, fault_tolerance="ulfm").run
    variables = clean_environment(OMPI_COMM_WORLD_RANK="3", OMPI_COMM_WORLD_SIZE="7")
    subprocess.run([str(shim), str(run)], env=variables, timeout=20, capture_output=True, start_new_session=True)
    assert json.loads((run / "exits" / "rank-0003").read_text())["exit"] == 40 + sleeps


def test_the_carrier_has_one_that_comes_before_that_of_libc(require: Callable[[str], str]) -> None:
    symbols = subprocess.run([require("nm"), "-D", carrier_program()], capture_output=True, text=True, check=True)
    assert " T sched_yield\n" in symbols.stdout
