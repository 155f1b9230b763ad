#define _GNU_SOURCE
#include "base/arena.h"

#include <stdlib.h>
#include <sys/mman.h>

/* The rest of a chunk is never touched, so large chunks cost nothing and waste little. */
static const size_t LINE = 64, CHUNK = (size_t)16 << 20;

struct mpidata_arena_chunk {
    void *memory;
    mpidata_arena_chunk *next;
    int locked;
};

static size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

static int add_chunk(mpidata_arena *arena, size_t bytes) {
    mpidata_arena_chunk *chunk = malloc(sizeof *chunk);
    char *memory = aligned_alloc(MPIDATA_HUGE_PAGE, bytes);
    if (!chunk || !memory) {
        free(chunk);
        free(memory);
        return -1;
    }
#ifdef MADV_HUGEPAGE
    (void)madvise(memory, bytes, MADV_HUGEPAGE); /* only a hint: without it, access is slower */
#endif
    *chunk = (mpidata_arena_chunk){memory, arena->chunks, arena->pages && arena->pages->lock(memory, bytes)};
    arena->chunks = chunk;
    arena->at = memory;
    arena->left = bytes;
    return 0;
}

void *mpidata_arena_take(mpidata_arena *arena, size_t bytes) {
    bytes = round_up(bytes ? bytes : 1, LINE);
    if (bytes > arena->left && add_chunk(arena, bytes < CHUNK ? CHUNK : round_up(bytes, MPIDATA_HUGE_PAGE))) return NULL;
    void *taken = arena->at;
    arena->at += bytes;
    arena->left -= bytes;
    return taken;
}

void mpidata_arena_close(mpidata_arena *arena) {
    for (mpidata_arena_chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        if (chunk->locked) arena->pages->unlock(chunk->memory);
        free(chunk->memory);
        free(chunk);
    }
    *arena = (mpidata_arena){0};
}
