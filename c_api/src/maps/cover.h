/* Checks that maps together have each row of a field once, and copies their rows to their places. */
#ifndef MPIDATA_COVER_H
#define MPIDATA_COVER_H

#include "maps/kept.h"

/* Check n > 0 maps, ordered by rank and each rank's calls, which together have at most as many rows as the field. Each set of
 * maps is checked once. */
int mpidata_maps_cover(mpidata_kept_map *const *maps, const int *ranks, int n, int64_t rows, const char *field);

/* Copy rows, contiguous, to their places: outer x map->n x row bytes into outer x rows x row bytes. */
void mpidata_scatter_rows(const mpidata_kept_map *map, char *target, int64_t rows, const char *values, int64_t outer, size_t row);

#endif
