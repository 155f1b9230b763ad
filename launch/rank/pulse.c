/* The page in which the program publishes its state. */
#define _GNU_SOURCE
#include "base/pulse.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rank.h"

mpidata_pulse *open_pulse(char **name)
{
    struct stat status;
    const int page = memfd_create("mpidata-pulse", 0); /* to be inherited by the program */
    if (page < 0 || ftruncate(page, (off_t)sizeof(mpidata_pulse)) || fstat(page, &status))
        refuse("Cannot make a page of memory: %s. Rank %ld.", strerror(errno), me.rank);
    mpidata_pulse *pulse = mmap(NULL, sizeof *pulse, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
    if (pulse == MAP_FAILED) refuse("Cannot map a page of memory: %s. Rank %ld.", strerror(errno), me.rank);
    pulse->magic = MPIDATA_PULSE_MAGIC;
    if (me.spawned) atomic_store(&pulse->flags, MPIDATA_PULSE_SPAWNED);
    pulse->parent = (int32_t)getpid();
    *name = print("%d:%llu", page, (unsigned long long)status.st_ino);
    return pulse;
}

unsigned flags_of(const mpidata_pulse *pulse) { return atomic_load(&pulse->flags); }

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
