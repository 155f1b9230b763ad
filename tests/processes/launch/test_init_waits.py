"""With what mpidata-rank preloads into solvers, waits of Open MPI's MPI_Init sleep longer and longer; no MPI."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from launch_job import build_shim, clean_environment, make_plan

_MPI = "#include <unistd.h>\nvoid look(void) { usleep(100); }\n"
# Arguments: flags of the page, and the path of a library with `look`. Prints for how many ns a wait of it sleeps, at
# first and 0.6 s later, and a wait of the program itself.
_PROGRAM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static long asked;
int nanosleep(const struct timespec *time, struct timespec *rest) {
    (void)rest;
    asked = 1000000000L * time->tv_sec + time->tv_nsec;
    return 0;
}
int main(int argc, char **argv) {
    const unsigned flags = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
    const struct timespec time = {.tv_nsec = 600000000};
    void (*look)(void);
    if (pwrite(atoi(getenv("MPIDATA_PULSE")), &flags, sizeof flags, 4) < 0) return 1;
    *(void **)&look = dlsym(dlopen(argv[2], RTLD_NOW), "look");
    look();
    printf("%ld", asked);
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
    look();
    printf(" %ld", asked);
    usleep(1500000);
    printf(" %ld", asked);
    return 0;
}
"""
_ARRIVED, _SPAWNED = 32, 128


@pytest.mark.parametrize(
    ("library", "flags", "later"),
    [
        ("libmpi.so.40", 0, 10_000_000),
        ("libmpi.so.40", _ARRIVED, 100_000),
        ("libmpi.so.40", _SPAWNED, 100_000),
        ("libother.so", 0, 100_000),
    ],
)
def test_only_waits_in_mpi_init_sleep_longer(
    tmp_path: Path, require: Callable[[str], str], library: str, flags: int, later: int
) -> None:
    cc = require("cc")
    shim = build_shim(tmp_path, cc)
    for name, text in (("mpi.c", _MPI), ("program.c", _PROGRAM)):
        (tmp_path / name).write_text(text)
    for words in (["-shared", "-fPIC", "mpi.c", "-o", library], ["-rdynamic", "program.c", "-o", "program", "-ldl"]):
        subprocess.run([cc, *words], cwd=tmp_path, check=True)
    program = [str(tmp_path / "program"), str(flags), str(tmp_path / library)]
    run = make_plan(tmp_path, {"solver": program}, fault_tolerance="ulfm").run
    variables = clean_environment(OMPI_COMM_WORLD_RANK="3", OMPI_COMM_WORLD_SIZE="7")
    subprocess.run([str(shim), str(run)], env=variables, timeout=20, capture_output=True, start_new_session=True)
    (log,) = (run / "logs").iterdir()
    assert log.read_text().splitlines()[-1] == f"100000 {later} 1500000000"
