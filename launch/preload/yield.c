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

__attribute__((visibility("default"))) int sched_yield(void) {
    const mpidata_pulse *page = mpidata_pulse_page();
    if (!page || !(atomic_load(&page->flags) & MPIDATA_PULSE_FINALIZING)) return (int)syscall(SYS_sched_yield);
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return 0;
}
