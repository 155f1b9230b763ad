/* The receives of blocks in flight. Only for the receive thread. */
#ifndef MPIDATA_RECEIVES_H
#define MPIDATA_RECEIVES_H

#include <mpi.h>

#include "receive/assembly/assembly.h"

/* Limit of receives in flight, as each takes memory; one that lasts unusually long does not count, because its sender may
 * compute, hang or have died. */
enum { MPIDATA_RECEIVES_MAX = 32 };

typedef struct {
    mpidata_assembly *assembly; /* NULL: to be dropped */
    char *scrap;                /* memory for a block to be dropped, else NULL */
    double since;               /* s */
    int failed;                 /* its sender died */
} mpidata_receive;

typedef struct {
    MPI_Request *requests;
    mpidata_receive *list, *ended; /* the oldest first; those that ended last */
    int *done;
    MPI_Status *statuses;
    int n;
    int64_t allocated;
} mpidata_receives;

/* Also frees blocks that were being dropped. */
void mpidata_receives_close(mpidata_receives *receives);

/* Whether something in flight since then lasts longer than usual. */
int mpidata_lasts_long(double since);

/* Whether another one may start. */
int mpidata_receives_may_begin(const mpidata_receives *receives);

/* Make room for the next request, at requests[n]; and count it, once it is there. */
int mpidata_receives_reserve(mpidata_receives *receives);
void mpidata_receives_add(mpidata_receives *receives, mpidata_assembly *assembly, char *scrap);

/* Take out those that have ended, into `ended`. */
int mpidata_receives_test(mpidata_receives *receives, int *n_ended);

#endif
