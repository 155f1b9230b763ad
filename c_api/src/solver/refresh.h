/* What a group has of what is published: all its ranks the same version, in memory of each that stays where it is. */
#ifndef MPIDATA_REFRESH_H
#define MPIDATA_REFRESH_H

#include "published/asking.h"
#include "solver/sender.h"

typedef struct {
    mpidata_asking asking; /* of the group's rank 0 */
    mpidata_contents *held; /* NULL: nothing has been published */
    int64_t held_bytes;
    mpidata_arena arena;
    mpidata_sender *sender; /* goes on meanwhile */
    double since;           /* it waits; s */
} mpidata_refreshing;

void mpidata_refreshing_open(mpidata_refreshing *refreshing, mpidata_sender *sender);

/* What is held is left where it is: callers may still have its address. */
void mpidata_refreshing_close(mpidata_refreshing *refreshing);

/* Take what is newer; collective over the group. Blocks until the trainer that publishes has answered. */
int mpidata_refreshing_do(mpidata_refreshing *refreshing, MPI_Comm group, int group_size);

#endif
