#include "maps/cover.h"

#include <stdlib.h>
#include <string.h>

static int is_known(const mpidata_map_set *set, mpidata_kept_map *const *maps, int n, int64_t rows) {
    if (!set->ids || set->n != n || set->rows != rows) return 0;
    for (int i = 0; i < n; i++)
        if (set->ids[i] != maps[i]->id) return 0;
    return 1;
}

/* If memory is exhausted, the set is checked again with the next sample. */
static void remember(mpidata_kept_map *const *maps, int n, int64_t rows) {
    mpidata_map_set *set = &maps[0]->sets[maps[0]->next_set];
    free(set->ids);
    *set = (mpidata_map_set){rows, malloc((size_t)n * sizeof *set->ids), n};
    for (int i = 0; i < n && set->ids; i++) set->ids[i] = maps[i]->id;
    maps[0]->next_set = (maps[0]->next_set + 1) % MPIDATA_KEPT_SETS;
}

static int is_set(const uint64_t *bits, int64_t row) { return bits[row / 64] >> row % 64 & 1; }

static void set(uint64_t *bits, int64_t row) { bits[row / 64] |= UINT64_C(1) << row % 64; }

/* The row was put by maps[second], and by one before it. */
static int put_twice(mpidata_kept_map *const *maps, const int *ranks, int second, int64_t row, const char *field) {
    int first = 0;
    for (int64_t i = 0; maps[first]->indices[i] != row;)
        if (++i == maps[first]->n) i = 0, first++;
    return mpidata_error(MPIDATA_ERR_BLOCK, "Row %lld of field '%s' was put twice, by ranks %d and %d of the group", (long long)row,
                         field, ranks[first], ranks[second]);
}

/* There are as many rows as places: if none comes twice, each place has one. */
static int check(mpidata_kept_map *const *maps, const int *ranks, int n, const char *field, uint64_t *bits) {
    for (int m = 0; m < n; m++)
        for (int64_t i = 0; i < maps[m]->n; i++) {
            const int64_t row = maps[m]->indices[i];
            if (is_set(bits, row)) return put_twice(maps, ranks, m, row, field);
            set(bits, row);
        }
    return MPIDATA_SUCCESS;
}

static int missing_row(mpidata_kept_map *const *maps, const int *ranks, int n, int beyond, int64_t put, int64_t rows,
                       const char *field, uint64_t *bits) {
    for (int m = 0; m < n; m++)
        for (int64_t i = 0; i < maps[m]->n; i++)
            if (maps[m]->indices[i] < rows) set(bits, maps[m]->indices[i]);
    int64_t missing = 0;
    while (is_set(bits, missing)) missing++;
    if (put < rows)
        return mpidata_error(MPIDATA_ERR_BLOCK, "Row %lld of field '%s' is missing: the maps of all ranks have %lld of its "
                                                "%lld rows",
                             (long long)missing, field, (long long)put, (long long)rows);
    return mpidata_error(MPIDATA_ERR_BLOCK, "Row %lld of field '%s' is missing: all ranks have put %lld rows, and rank %d of the group "
                                            "row %lld, which count from 0",
                         (long long)missing, field, (long long)rows, ranks[beyond], (long long)maps[beyond]->greatest);
}

/* There are too few rows, or one is out of range: a row is missing. */
static int check_reach(mpidata_kept_map *const *maps, const int *ranks, int n, int64_t rows, const char *field, uint64_t *bits) {
    int beyond = -1;
    int64_t put = 0;
    for (int m = 0; m < n; m++) {
        put += maps[m]->n;
        if (maps[m]->greatest >= rows) beyond = m;
    }
    if (beyond < 0 && put >= rows) return MPIDATA_SUCCESS;
    return missing_row(maps, ranks, n, beyond, put, rows, field, bits);
}

int mpidata_maps_cover(mpidata_kept_map *const *maps, const int *ranks, int n, int64_t rows, const char *field) {
    for (int i = 0; i < MPIDATA_KEPT_SETS; i++)
        if (is_known(&maps[0]->sets[i], maps, n, rows)) return MPIDATA_SUCCESS;
    uint64_t *bits = calloc((size_t)rows / 64 + 1, sizeof *bits);
    if (!bits) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the maps of field '%s'", field);
    int status = check_reach(maps, ranks, n, rows, field, bits);
    if (!status) status = check(maps, ranks, n, field, bits);
    free(bits);
    if (!status) remember(maps, n, rows);
    return status;
}

static void scatter_runs(const mpidata_kept_map *map, char *target, const char *values, size_t row) {
    for (const mpidata_run *run = map->runs, *end = run + map->n_runs; run < end; run++) {
        memcpy(target + run->first * row, values, run->n * row);
        values += run->n * row;
    }
}

#define SCATTER_ROWS(bytes) \
    for (int64_t i = 0; i < map->n; i++) memcpy(target + map->indices[i] * (size_t)(bytes), values + (size_t)i * (bytes), bytes);

static void scatter(const mpidata_kept_map *map, char *target, const char *values, size_t row) {
    if (map->runs) {
        scatter_runs(map, target, values, row);
    } else if (row == 4) {
        SCATTER_ROWS(4)
    } else if (row == 8) {
        SCATTER_ROWS(8)
    } else if (row == 16) {
        SCATTER_ROWS(16)
    } else {
        SCATTER_ROWS(row)
    }
}

void mpidata_scatter_rows(const mpidata_kept_map *map, char *target, int64_t rows, const char *values, int64_t outer, size_t row) {
    for (int64_t o = 0; o < outer; o++)
        scatter(map, target + (size_t)(o * rows) * row, values + (size_t)(o * map->n) * row, row);
}
