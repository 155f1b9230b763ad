/* The maps that a trainer has received from one rank in one stream. Only for the receive thread. */
#ifndef MPIDATA_KEPT_H
#define MPIDATA_KEPT_H

#include "wire/wire.h"

enum { MPIDATA_KEPT_SETS = 4 };

/* Maps that together have each of a number of rows once. */
typedef struct {
    int64_t rows, *ids;
    int n;
} mpidata_map_set;

typedef struct {
    uint32_t first, n;
} mpidata_run;

typedef struct {
    int64_t number; /* among those of its rank */
    int64_t id;     /* unique on this trainer */
    int64_t n, greatest;
    uint32_t *indices; /* UINT32_MAX: beyond all fields */
    mpidata_run *runs; /* if they are few, else NULL */
    int64_t n_runs;    /* runs of consecutive indices */
    int uses;       /* by samples that are not whole yet */
    int forgotten;  /* by its rank */
    mpidata_map_set sets[MPIDATA_KEPT_SETS]; /* the last checked sets of which it is the first map */
    int next_set;
} mpidata_kept_map;

/* In the order of their numbers. Zeros: empty. */
typedef struct {
    mpidata_kept_map **list;
    int64_t n, room;
} mpidata_kept_maps;

/* Take a checked message with a map, or forget the maps that it names. */
int mpidata_kept_take(mpidata_kept_maps *kept, const mpidata_map_head *head, const int64_t *indices);

/* NULL: there is none of this number. */
mpidata_kept_map *mpidata_kept_find(const mpidata_kept_maps *kept, int64_t number);

/* A sample no longer needs it; a forgotten map is freed with its last use. */
void mpidata_kept_let_go(mpidata_kept_map *map);

/* Forget all. */
void mpidata_kept_clear(mpidata_kept_maps *kept);

#endif
