/* Maps: which rows of a field a rank puts, or the numbers within the group of its local numbers. A map lives until its program
 * has freed it and no message holds it. */
#ifndef MPIDATA_MAPS_H
#define MPIDATA_MAPS_H

#include "calls/put_check.h"

struct mpidata_map {
    int64_t number; /* among the maps of this rank, from 1 */
    int64_t n, least, greatest; /* least, greatest: of its indices, if n > 0 */
    int64_t *indices;      /* within `message` */
    mpidata_map_head *message; /* as it is sent; the indices follow */
    int checked;           /* whether it is known that no row is in it twice */
    int holders;           /* the program, staged samples and messages in flight */
    char *sent;            /* for the transport: to which trainers; NULL: to none */
};

/* Create one; the last error is a sentence without place and full stop. */
int mpidata_map_make(int64_t n, const int64_t *indices, mpidata_map **map, const char **advice);

/* A map with these indices, less `base`, which is kept for the next call with the same ones; only the most recently used ones
 * are kept. */
int mpidata_map_remember(int64_t n, const int64_t *indices, int64_t base, mpidata_map **map, const char **advice);

void mpidata_map_hold(mpidata_map *map);

/* The last holder frees it. */
void mpidata_map_let_go(mpidata_map *map);

/* forget: called for a map that was sent and is no longer needed. */
void mpidata_maps_open(void (*forget)(const mpidata_map *map));

/* Forget the remembered maps, and no longer call `forget`. */
void mpidata_maps_close(void);

/* Check, besides mpidata_put_check, a put by a map ... */
int mpidata_rows_check(const mpidata_plan *plan, const mpidata_put_arguments *put, const mpidata_block *block, const char **advice);

/* ... and local numbers. */
int mpidata_local_numbers_check(const mpidata_plan *plan, const mpidata_put_arguments *put, const mpidata_block *block,
                                const char **advice);

#endif
