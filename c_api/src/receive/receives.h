/* The receives of blocks that are under way. The receive thread's own. */
#ifndef MPIDATA_RECEIVES_H
#define MPIDATA_RECEIVES_H

#include <mpi.h>

#include "receive/assembly/assembly.h"

/* So many may be under way at once, as each takes memory; one that lasts longer than usual does not count, as its sender
 * may compute, hang or have died. */
enum { MPIDATA_RECEIVES_MAX = 32 };

typedef struct {
    mpidata_assembly *assembly; /* NULL: to be dropped */
    char *scrap;                /* where a block to be dropped goes, else NULL */
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

/* Frees what was to be dropped, too. */
void mpidata_receives_close(mpidata_receives *receives);

/* Does something that is under way since then last longer than usual? */
int mpidata_lasts_long(double since);

/* May another one begin? */
int mpidata_receives_may_begin(const mpidata_receives *receives);

/* Have room for the next request, at requests[n]; and count it, once it is there. */
int mpidata_receives_reserve(mpidata_receives *receives);
void mpidata_receives_add(mpidata_receives *receives, mpidata_assembly *assembly, char *scrap);

/* Take out those that have ended, into `ended`. */
int mpidata_receives_test(mpidata_receives *receives, int *n_ended);

#endif
