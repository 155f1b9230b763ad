/* Search for overlapping blocks of one sample. Pure. */
#ifndef MPIDATA_OVERLAP_H
#define MPIDATA_OVERLAP_H

#include "wire/wire.h"

typedef struct {
    int one, other;   /* numbers of two blocks that overlap, the lower one first; -1: there are none */
    int64_t compared; /* compared pairs of blocks: n log n for those of a grid */
} mpidata_overlap;

/* Search for two of n blocks that overlap; MPIDATA_ERR_MEMORY, without a text, if memory is exhausted. */
int mpidata_overlap_find(const mpidata_block *blocks, int n, mpidata_overlap *found);

#endif
