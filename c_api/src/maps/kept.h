/* The maps of one rank that a trainer has got, in one stream. Not thread-safe: the receive thread's own. */
#ifndef MPIDATA_KEPT_H
#define MPIDATA_KEPT_H

#include "wire/wire.h"

enum { MPIDATA_KEPT_SETS = 4 };

/* Maps that together have each of so many rows once. */
typedef struct {
    int64_t rows, *ids;
    int n;
} mpidata_map_set;

typedef struct {
    uint32_t first, n;
} mpidata_run;

typedef struct {
    int64_t number; /* of those of its rank */
    int64_t id;     /* of all on this trainer, ever */
    int64_t n, greatest;
    uint32_t *indices; /* one that no field has is UINT32_MAX */
    mpidata_run *runs; /* if there are few; NULL: there are not */
    int64_t n_runs;    /* of indices that follow one another */
    int uses;       /* by samples that are not whole yet */
    int forgotten;  /* by its rank */
    mpidata_map_set sets[MPIDATA_KEPT_SETS]; /* of which it is the first, the last ones that were checked */
    int next_set;
} mpidata_kept_map;

/* In the order of their numbers. Zeros: there are none. */
typedef struct {
    mpidata_kept_map **list;
    int64_t n, room;
} mpidata_kept_maps;

/* Take the message of a map, which has been checked, or forget some. */
int mpidata_kept_take(mpidata_kept_maps *kept, const mpidata_map_head *head, const int64_t *indices);

/* NULL: there is none of this number. */
mpidata_kept_map *mpidata_kept_find(const mpidata_kept_maps *kept, int64_t number);

/* A sample needs it no more; one that is forgotten goes with its last use. */
void mpidata_kept_let_go(mpidata_kept_map *map);

/* Forget all. */
void mpidata_kept_clear(mpidata_kept_maps *kept);

#endif
