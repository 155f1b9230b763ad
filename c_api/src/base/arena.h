/* Memory that is given back only as a whole, in huge pages where the system has them. A transport that copies from one
 * process to another pins its pages one by one: with huge ones it was measured 1.5 to 2.4 times as fast from 64 KB a
 * message up. Not thread-safe. */
#ifndef MPIDATA_ARENA_H
#define MPIDATA_ARENA_H

#include <stddef.h>

enum { MPIDATA_HUGE_PAGE = 2 << 20, MPIDATA_LARGE = 2 * MPIDATA_HUGE_PAGE }; /* large: has a whole one, wherever it begins */

typedef struct mpidata_arena_chunk mpidata_arena_chunk;

/* What is done with memory that is new, and before it is freed, if that said that it did it. */
typedef struct {
    int (*lock)(void *memory, size_t bytes);
    void (*unlock)(void *memory);
} mpidata_arena_pages;

typedef struct {
    mpidata_arena_chunk *chunks;
    char *at; /* what is left of the newest chunk */
    size_t left;
    const mpidata_arena_pages *pages; /* NULL: nothing */
} mpidata_arena;

/* Memory with undefined contents, on a boundary of 64 bytes, or NULL where it is short. An arena of zeros is empty. */
void *mpidata_arena_take(mpidata_arena *arena, size_t bytes);

void mpidata_arena_close(mpidata_arena *arena);

#endif
