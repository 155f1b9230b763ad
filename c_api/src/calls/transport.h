/* How a solver rank communicates with the job: by MPI in libmpidata (solver/mpi_transport.c), by memory shared with its carrier
 * in libmpidata_carried (carried/memory_transport.c). */
#ifndef MPIDATA_TRANSPORT_H
#define MPIDATA_TRANSPORT_H

#include "calls/put_check.h"
#include "contents/contents.h"

/* The work of a rank on a simulation. */
typedef struct {
    int64_t simulation; /* -1: none, or not counted */
    int64_t steps;
    int failed;
} mpidata_done;

/* All except the first two and `close` are called only in a job. */
typedef struct {
    int (*forked)(void); /* whether this process was forked from the rank ... */
    int (*refuse_forked)(void); /* ... and the error of its calls */
    void (*who)(char *text, size_t size);
    int (*settle)(int status);            /* every call ends here; may end the process */
    void (*report)(const char *sentence); /* an error that ends the job */
    int (*stage)(const mpidata_block *block, const mpidata_put_arguments *put, int lend); /* lend: if possible, without a copy */
    int (*wait)(const void *values); /* until this array, or with NULL each array, is no longer lent */
    int (*step)(double time);        /* send what was staged */
    void (*drop)(void);              /* forget what was staged */
    /* The first row of a field that is in no map of a step, given that the ranks put `put` of `rows` rows; -1: unknown. Not for
     * carried programs, whose carrier counts. */
    int64_t (*missing_row)(int64_t step, int field, int64_t put, int64_t rows);
    void (*forget)(const mpidata_map *map); /* a map that was sent and is no longer needed */
    int (*refresh)(void); /* take the newest published arrays; MPIDATA_END: the job is stopping */
    const mpidata_contents *(*published)(void); /* the arrays of the last refresh; NULL: none */
    int (*complete)(void);           /* agreement of the ranks of a group before a simulation is closed */
    int (*next)(const mpidata_done *done, int64_t *simulation); /* request one; MPIDATA_END: there is none */
    /* Ask an inference rank; wait for the answer to a question. ERR_ARGUMENT: too many are open; it is not open. */
    int (*ask)(const mpidata_array *in, int n_in, const mpidata_array *out, int n_out, int64_t *version, int64_t *question);
    int (*answer)(int64_t question);
    int (*fail)(const char *reason, int how); /* MPIDATA_GIVEN_UP, or MPIDATA_TRY_FAILED */
    int (*leave)(const mpidata_done *done);
    void (*close)(void); /* free everything */
} mpidata_transport;

#endif
