/* Preloaded with abort.c, and part of the carrier: a rank that is in MPI_Finalize leaves its core to others.
 *
 * MPI_Finalize waits for all ranks, the trainers among them, which may work on for hours. Where there are more ranks than
 * cores, Open MPI calls sched_yield between two looks, which keeps every core busy that nobody else wants. */
#define _GNU_SOURCE
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/beat.h"

static const mpidata_pulse *page;

/* Not in the call: UCX, which has its constructor run before, calls sched_yield where mmap must not be called. */
__attribute__((constructor)) static void find_page(void) { page = mpidata_pulse_page(); }

__attribute__((visibility("default"))) int sched_yield(void) {
    if (!page || !(atomic_load(&page->flags) & MPIDATA_PULSE_FINALIZING)) return (int)syscall(SYS_sched_yield);
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return 0;
}
