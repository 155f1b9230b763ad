/* Memory in pieces of any size, freed in any order: best fit within bins of sizes; adjacent free blocks are merged, so that
 * the memory is that of the pieces in use, not of the largest ones. It is taken from an arena: huge pages, freed only as a
 * whole. Not thread-safe. */
#ifndef MPIDATA_HEAP_H
#define MPIDATA_HEAP_H

#include "base/arena.h"

enum { MPIDATA_HEAP_BINS = 256 };

typedef struct mpidata_heap_block mpidata_heap_block;

/* A heap of zeros is empty. */
typedef struct {
    mpidata_arena arena;
    mpidata_heap_block *free[MPIDATA_HEAP_BINS]; /* by size */
    size_t taken; /* bytes in use, heads and rounding included */
    size_t room;  /* bytes of the arena */
} mpidata_heap;

/* Memory with undefined contents, aligned to 64 bytes, or NULL if memory is exhausted. */
void *mpidata_heap_take(mpidata_heap *heap, size_t bytes);

/* Free it; NULL: no effect. */
void mpidata_heap_give_back(mpidata_heap *heap, void *memory);

void mpidata_heap_close(mpidata_heap *heap);

#endif
