/* How much memory is left to new programs on this host. */
#ifndef MPIDATA_AVAILABLE_MEMORY_H
#define MPIDATA_AVAILABLE_MEMORY_H

#include <stdint.h>

/* Bytes that the host has, or that the control groups of this process (version 1 or 2) leave, whichever is less; -1: unknown.
 * proc, cgroup: "/proc" and "/sys/fs/cgroup". *limited, which may be NULL: a control group leaves less than the host has.
 * mpidata/checkpoint/memory.py also calls it. */
int64_t mpidata_available_memory(const char *proc, const char *cgroup, int *limited);

#endif
