/* The state that a program of the job publishes to mpidata-rank, its parent, in a page of memory that both map.
 *
 * mpidata-rank makes the page (memfd), whose descriptor the program inherits, and names it in MPIDATA_PULSE as
 * "fd:inode": a program that closed it must not take another file for it. Both check the magic number. */
#ifndef MPIDATA_PULSE_H
#define MPIDATA_PULSE_H

#include <stdatomic.h>
#include <stdint.h>

#define MPIDATA_PULSE_VARIABLE "MPIDATA_PULSE"
#define MPIDATA_PULSE_MAGIC UINT32_C(0x4d505031)

enum {
    MPIDATA_PULSE_JOINED = 1,     /* the program has joined the job */
    MPIDATA_PULSE_LEFT = 2,       /* it has left the job in order */
    MPIDATA_PULSE_FINALIZING = 4, /* MPI_Finalize has begun */
    MPIDATA_PULSE_LOST = 8,       /* it ends because its group is lost */
    MPIDATA_PULSE_ABORTED = 16,   /* it has called MPI_Abort */
    MPIDATA_PULSE_ARRIVED = 32,   /* it is joining, which waits until all ranks have arrived */
    /* A solver that has no simulation yet or has made no step of it, or a loader that builds a dataset: it may take longer. */
    MPIDATA_PULSE_STARTING = 64,
    MPIDATA_PULSE_SPAWNED = 128, /* mpidata-rank was spawned while the job ran */
    MPIDATA_PULSE_ENDS = MPIDATA_PULSE_LEFT | MPIDATA_PULSE_FINALIZING | MPIDATA_PULSE_LOST | MPIDATA_PULSE_ABORTED
};

typedef struct {
    uint32_t magic;
    _Atomic uint32_t flags;
    /* CLOCK_MONOTONIC of the last sign of life of a solver, loader or server: when it enters a call of libmpidata,
     * repeatedly while it waits inside, and when it returns. 0: it gives none, and is not watched. */
    _Atomic uint64_t beat_ns;
    _Atomic int32_t abort_code; /* if it has called MPI_Abort */
    int32_t parent;             /* process id of mpidata-rank */
    /* For the exit note, in UTF-8, ends with 0: what a loader is reading, or how a Python exception ends a solver. */
    char at[992];
    _Atomic int64_t batches; /* that a trainer has drawn: of a stream in total, of loaders since its start. For the exit note */
} mpidata_pulse;

_Static_assert(sizeof(mpidata_pulse) == 1024, "both sides must agree on the page");

#endif
