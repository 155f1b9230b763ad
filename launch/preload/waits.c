/* Preloaded into solvers and loaders beside abort.c: those that start with the job and wait in MPI_Init leave the cores to
 * the ranks that they wait for.
 *
 * Open MPI's MPI_Init checks every 0.1 ms, by usleep(100), whether all ranks have come. With 64 ranks, this alone keeps two
 * cores busy, and a scheduler and a trainer that load their modules meanwhile arrive many seconds later. Here libmpi sleeps
 * longer the longer it has waited: 2 % of that time, 10 ms at most. After the program has joined, it sleeps as requested.
 *
 * Spawned ranks wait for no rank that loads modules. If one of several groups died while it started, longer sleeps led to a
 * PMIX_ERR_UNREACH of the launcher and a group that never finished joining, in 3 of 33 jobs on busy cores; without them, in
 * none of 36. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/beat.h"

enum { PART = 50, LONGEST_NS = 10000000 };

__attribute__((visibility("default"))) int usleep(useconds_t microseconds);

static int is_of_mpi(const void *caller) {
    Dl_info found;
    if (!dladdr(caller, &found) || !found.dli_fname) return 0;
    const char *slash = strrchr(found.dli_fname, '/'), *name = slash ? slash + 1 : found.dli_fname;
    return strncmp(name, "libmpi.so", 9) == 0;
}

static int waits_for_the_start(void) {
    mpidata_pulse *page = mpidata_pulse_page();
    const unsigned others = MPIDATA_PULSE_ARRIVED | MPIDATA_PULSE_JOINED | MPIDATA_PULSE_SPAWNED;
    return page && !(atomic_load(&page->flags) & others);
}

/* Nanoseconds to sleep instead of those requested. */
static uint64_t longer(uint64_t asked) {
    static _Atomic uint64_t begun; /* start of the first of these waits */
    struct timespec time;
    uint64_t none = 0;
    if (clock_gettime(CLOCK_MONOTONIC, &time)) return asked;
    const uint64_t now = (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
    const uint64_t since = atomic_compare_exchange_strong(&begun, &none, now) ? now : none;
    const uint64_t part = (now - since) / PART, most = part < LONGEST_NS ? part : LONGEST_NS;
    return asked > most ? asked : most;
}

int usleep(useconds_t microseconds) {
    uint64_t ns = (uint64_t)microseconds * 1000;
    if (waits_for_the_start() && is_of_mpi(__builtin_return_address(0))) ns = longer(ns);
    const struct timespec pause = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    return nanosleep(&pause, NULL);
}
