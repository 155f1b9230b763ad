/* The published arrays of a group: the same version on all its ranks, in memory of each that does not move. */
#ifndef MPIDATA_REFRESH_H
#define MPIDATA_REFRESH_H

#include "published/asking.h"
#include "solver/sender.h"

typedef struct {
    mpidata_asking asking; /* of the group's rank 0 */
    mpidata_contents *held; /* NULL: nothing has been published */
    int64_t held_bytes;
    mpidata_arena arena;
    mpidata_sender *sender; /* progresses meanwhile */
    double since;           /* start of the wait; s */
} mpidata_refreshing;

void mpidata_refreshing_open(mpidata_refreshing *refreshing, mpidata_sender *sender);

/* The arrays are not freed: callers may still have their address. */
void mpidata_refreshing_close(mpidata_refreshing *refreshing);

/* Take newer arrays; collective over the group. Blocks until the trainer that publishes has answered. */
int mpidata_refreshing_do(mpidata_refreshing *refreshing, MPI_Comm group, int group_size);

#endif
