/* Maps: which rows of a field a rank puts, or what its local numbers are in all of the group. A map lives until its program has
 * freed it and no message holds it. */
#ifndef MPIDATA_MAPS_H
#define MPIDATA_MAPS_H

#include "calls/put_check.h"

struct mpidata_map {
    int64_t number; /* of those of this rank, from 1 */
    int64_t n, least, greatest; /* the latter of its indices, where n > 0 */
    int64_t *indices;      /* within `message` */
    mpidata_map_head *message; /* as it is sent; the indices follow */
    int checked;           /* no row is in it twice */
    int holders;           /* the program, samples that are staged and messages under way */
    char *sent;            /* the transport's: to whom; NULL: to nobody */
};

/* Create one; a sentence without place and full stop in the last error. */
int mpidata_map_make(int64_t n, const int64_t *indices, mpidata_map **map, const char **advice);

/* One that has these indices, less `base`, and is kept for the next call with the same; of those that were not asked for lately
 * all but some are freed. */
int mpidata_map_remember(int64_t n, const int64_t *indices, int64_t base, mpidata_map **map, const char **advice);

void mpidata_map_hold(mpidata_map *map);

/* The last holder frees it. */
void mpidata_map_let_go(mpidata_map *map);

/* forget: is called of a map that was sent, and is needed no more. */
void mpidata_maps_open(void (*forget)(const mpidata_map *map));

/* Forget those that are remembered, and tell nobody of others from then on. */
void mpidata_maps_close(void);

/* Check, beside mpidata_put_check, what is put by a map ... */
int mpidata_rows_check(const mpidata_plan *plan, const mpidata_put_arguments *put, const mpidata_block *block, const char **advice);

/* ... and local numbers. */
int mpidata_local_numbers_check(const mpidata_plan *plan, const mpidata_put_arguments *put, const mpidata_block *block,
                                const char **advice);

#endif
