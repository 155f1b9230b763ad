/* Memory in pieces of any size, which come back in any order: best fit within bins of sizes, and what lies side by side becomes
 * one again, so that memory is that of what is in use, not of the longest. It is an arena's: huge pages, given back only
 * as a whole. Not thread-safe. */
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

/* Memory with undefined contents, on a boundary of 64 bytes, or NULL where it is short. */
void *mpidata_heap_take(mpidata_heap *heap, size_t bytes);

/* Give it back; NULL: nothing. */
void mpidata_heap_give_back(mpidata_heap *heap, void *memory);

void mpidata_heap_close(mpidata_heap *heap);

#endif
