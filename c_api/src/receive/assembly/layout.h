/* Which blocks the ranks of a group have put in a step in which none overlapped: in the next steps they are mostly the same,
 * and need no comparison. One for all groups, whose ranks most often put alike. */
#ifndef MPIDATA_LAYOUT_H
#define MPIDATA_LAYOUT_H

#include "wire/wire.h"

typedef struct {
    int known;       /* is there one? */
    int64_t version; /* counts its changes */
    int *first;      /* by rank of the group, and one more: where its blocks begin */
    mpidata_block *blocks;
    int64_t room;
} mpidata_layout;

/* Is this the number-th block of the rank in it? */
int mpidata_layout_has(const mpidata_layout *layout, int rank_in_group, int number, const mpidata_block *block);

/* It is that of n blocks from now on; each rank's are in the order of its calls. Where memory is short there is none. */
void mpidata_layout_set(mpidata_layout *layout, int ranks, const mpidata_block *blocks, const int *ranks_in_group, int n);

void mpidata_layout_free(mpidata_layout *layout);

#endif
