/* Preloaded as abort.c is: a solver that is in MPI_Finalize leaves its core to others.
 *
 * MPI_Finalize waits for all ranks, the trainers among them, which may go on for hours. Open MPI asks without end whether
 * they have come, and calls sched_yield in between, which keeps a core busy that is free, or half of one that is not. */
#define _GNU_SOURCE
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/beat.h"

__attribute__((visibility("default"))) int sched_yield(void) {
    const mpidata_pulse *page = mpidata_pulse_page();
    if (!page || !(atomic_load(&page->flags) & MPIDATA_PULSE_FINALIZING)) return (int)syscall(SYS_sched_yield);
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return 0;
}
