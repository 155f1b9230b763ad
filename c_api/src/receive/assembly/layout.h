/* The blocks that the ranks of a group have put in a step without overlaps: the next steps usually have the same ones, which
 * need no comparison. One for all groups, whose ranks usually put the same blocks. */
#ifndef MPIDATA_LAYOUT_H
#define MPIDATA_LAYOUT_H

#include "wire/wire.h"

typedef struct {
    int known;       /* whether there is one */
    int64_t version; /* counts its changes */
    int *first;      /* by rank of the group, and one more: where its blocks begin */
    mpidata_block *blocks;
    int64_t room;
} mpidata_layout;

/* Whether this is the number-th block of the rank in it. */
int mpidata_layout_has(const mpidata_layout *layout, int rank_in_group, int number, const mpidata_block *block);

/* Set it to n blocks; each rank's are in the order of its calls. If memory is exhausted, there is none. */
void mpidata_layout_set(mpidata_layout *layout, int ranks, const mpidata_block *blocks, const int *ranks_in_group, int n);

void mpidata_layout_free(mpidata_layout *layout);

#endif
