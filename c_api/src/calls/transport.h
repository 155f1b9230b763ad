/* How a solver rank talks to the job: by MPI in libmpidata (solver/mpi_transport.c), by memory shared with its carrier in
 * libmpidata_carried (carried/memory_transport.c). */
#ifndef MPIDATA_TRANSPORT_H
#define MPIDATA_TRANSPORT_H

#include "calls/put_check.h"
#include "contents/contents.h"

/* What a rank has done with a simulation. */
typedef struct {
    int64_t simulation; /* -1: none, or it is not to be counted */
    int64_t steps;
    int failed;
} mpidata_done;

/* All but the first two and `close` are called of a rank in a job only. */
typedef struct {
    int (*forked)(void); /* whether this process was forked from the rank ... */
    int (*refuse_forked)(void); /* ... and the error of its calls */
    void (*who)(char *text, size_t size);
    int (*settle)(int status);            /* every call ends here; may end the process */
    void (*report)(const char *sentence); /* of an error that ends the job */
    int (*stage)(const mpidata_block *block, const mpidata_put_arguments *put, int lend); /* lend: without a copy, where it can */
    int (*wait)(const void *values); /* until this array, or with NULL each, is lent no more */
    int (*step)(double time);        /* send what was staged */
    void (*drop)(void);              /* forget what was staged */
    /* The first of the rows of a field that none of the maps has that the ranks put in a step, so many rows in all; -1: unknown.
     * Not of carried programs, whose carrier counts. */
    int64_t (*missing_row)(int64_t step, int field, int64_t put, int64_t rows);
    void (*forget)(const mpidata_map *map); /* which was sent, and is needed no more */
    int (*refresh)(void); /* take what has been published since; MPIDATA_END: the job is stopping */
    const mpidata_contents *(*published)(void); /* as of that; NULL: nothing */
    int (*complete)(void);           /* what the ranks of a group agree on, before a simulation is closed */
    int (*next)(const mpidata_done *done, int64_t *simulation); /* ask for one; MPIDATA_END: there is none */
    /* Ask an inference rank, and wait for the answer to a question; ERR_ARGUMENT: too many are open, or it is not. */
    int (*ask)(const mpidata_array *in, int n_in, const mpidata_array *out, int n_out, int64_t *version, int64_t *question);
    int (*answer)(int64_t question);
    int (*fail)(const char *reason, int how); /* MPIDATA_GIVEN_UP, or MPIDATA_TRY_FAILED */
    int (*leave)(const mpidata_done *done);
    void (*close)(void); /* free everything */
} mpidata_transport;

#endif
