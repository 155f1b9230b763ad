#include "base/heap.h"

#include <stdint.h>
#include <string.h>

enum { UNIT = 64, CHUNK = 4 << 20, WORTH_SPLITTING = 4 * UNIT, BINS_AN_OCTAVE = 8, LOOKED_AT = 32 };

/* Precedes its memory, in a unit of its own. */
struct mpidata_heap_block {
    size_t bytes;  /* including this unit */
    size_t before; /* bytes of the previous block in its chunk; 0: none */
    int used, last; /* last: in its chunk */
    mpidata_heap_block *next, *previous; /* free blocks of its bin */
};
_Static_assert(sizeof(mpidata_heap_block) <= UNIT, "the memory after a block's head is aligned");

static mpidata_heap_block *after(mpidata_heap_block *block) {
    return block->last ? NULL : (mpidata_heap_block *)(void *)((char *)block + block->bytes);
}

static mpidata_heap_block *before(mpidata_heap_block *block) {
    return block->before ? (mpidata_heap_block *)(void *)((char *)block - block->before) : NULL;
}

/* All blocks of a bin are larger than all blocks of the previous bins. */
static int bin_of(size_t bytes) {
    size_t units = bytes / UNIT;
    int octave = 0;
    while (units >> octave >= 2 * BINS_AN_OCTAVE) octave++;
    size_t bin = (size_t)octave * BINS_AN_OCTAVE + (units >> octave);
    return bin < MPIDATA_HEAP_BINS ? (int)bin : MPIDATA_HEAP_BINS - 1;
}

static void put_in(mpidata_heap *heap, mpidata_heap_block *block) {
    mpidata_heap_block **bin = &heap->free[bin_of(block->bytes)];
    block->used = 0;
    block->previous = NULL;
    block->next = *bin;
    if (*bin) (*bin)->previous = block;
    *bin = block;
}

static void take_out(mpidata_heap *heap, mpidata_heap_block *block) {
    if (block->previous)
        block->previous->next = block->next;
    else
        heap->free[bin_of(block->bytes)] = block->next;
    if (block->next) block->next->previous = block->previous;
}

static void join_with_next(mpidata_heap_block *block) {
    const mpidata_heap_block *next = after(block);
    block->bytes += next->bytes;
    block->last = next->last;
    if (!block->last) after(block)->before = block->bytes;
}

/* Free the part that it does not need. */
static void split(mpidata_heap *heap, mpidata_heap_block *block, size_t bytes) {
    if (block->bytes < bytes + WORTH_SPLITTING) return;
    mpidata_heap_block *rest = (mpidata_heap_block *)(void *)((char *)block + bytes);
    *rest = (mpidata_heap_block){.bytes = block->bytes - bytes, .before = bytes, .last = block->last};
    block->bytes = bytes;
    block->last = 0;
    if (!rest->last) after(rest)->before = rest->bytes;
    put_in(heap, rest);
}

/* The best of the first ones; if they are too small, all of the next bin are large enough. */
static mpidata_heap_block *best_of(mpidata_heap_block *first, size_t bytes) {
    mpidata_heap_block *best = NULL;
    int looked_at = 0;
    for (mpidata_heap_block *block = first; block && looked_at++ < LOOKED_AT; block = block->next)
        if (block->bytes >= bytes && (!best || block->bytes < best->bytes)) best = block;
    return best;
}

static mpidata_heap_block *find(mpidata_heap *heap, size_t bytes) {
    for (int bin = bin_of(bytes); bin < MPIDATA_HEAP_BINS; bin++) {
        mpidata_heap_block *block = best_of(heap->free[bin], bytes);
        if (block) return block;
    }
    return NULL;
}

static int grow(mpidata_heap *heap, size_t bytes) {
    if (bytes < CHUNK) bytes = CHUNK;
    mpidata_heap_block *block = mpidata_arena_take(&heap->arena, bytes);
    if (!block) return 0;
    *block = (mpidata_heap_block){.bytes = bytes, .last = 1};
    put_in(heap, block);
    heap->room += bytes;
    return 1;
}

void *mpidata_heap_take(mpidata_heap *heap, size_t bytes) {
    if (bytes > SIZE_MAX / 4) return NULL;
    bytes = (bytes + 2 * UNIT - 1) / UNIT * UNIT;
    mpidata_heap_block *block = find(heap, bytes);
    if (!block && grow(heap, bytes)) block = find(heap, bytes);
    if (!block) return NULL;
    take_out(heap, block);
    split(heap, block, bytes);
    block->used = 1;
    heap->taken += block->bytes;
    return (char *)block + UNIT;
}

void mpidata_heap_give_back(mpidata_heap *heap, void *memory) {
    if (!memory) return;
    mpidata_heap_block *block = (mpidata_heap_block *)(void *)((char *)memory - UNIT), *next = after(block), *previous = before(block);
    heap->taken -= block->bytes;
    if (next && !next->used) {
        take_out(heap, next);
        join_with_next(block);
    }
    if (previous && !previous->used) {
        take_out(heap, previous);
        join_with_next(previous);
        block = previous;
    }
    put_in(heap, block);
}

void mpidata_heap_close(mpidata_heap *heap) {
    mpidata_arena_close(&heap->arena);
    memset(heap, 0, sizeof *heap);
}
