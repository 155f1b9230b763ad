#include "calls/maps.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "dtypes/indices.h"

enum { REMEMBERED_MAX = 16 };

static int64_t n_made; /* by this process */
static void (*forget)(const mpidata_map *map); /* callback of the transport */
static mpidata_map *remembered[REMEMBERED_MAX]; /* the most recently used first */

/* -- lifetime ------------------------------------------------------------------------------------------------------- */

static void free_memory(mpidata_map *map) {
    free(map->sent);
    free(map->message);
    free(map);
}

static int refuse_negative(const mpidata_map *map, int64_t base, const char **advice) {
    int64_t i = 0;
    while (map->indices[i] != map->least) i++;
    *advice = base ? "Indices count from 1." : "Indices count from 0.";
    return mpidata_error(MPIDATA_ERR_ARGUMENT, "Row %lld of a map has the index %lld", (long long)(i + base), (long long)(map->least + base));
}

static int make(int64_t n, const int64_t *indices, int64_t base, mpidata_map **made, const char **advice) {
    *made = NULL;
    *advice = "Pass the number of rows, 0 or more, and as many indices.";
    if (n < 0 || (n && !indices))
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "A map of %lld rows%s", (long long)n, n < 0 ? "" : ", whose indices are NULL");
    *advice = "A map needs 8 bytes per row.";
    mpidata_map *map = calloc(1, sizeof *map);
    mpidata_map_head *message = n < PTRDIFF_MAX / 16 ? malloc(sizeof *message + (size_t)n * sizeof *indices) : NULL;
    if (!map || !message) {
        free(map);
        free(message);
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a map of %lld rows", (long long)n);
    }
    *map = (mpidata_map){.number = ++n_made, .n = n, .indices = (int64_t *)(void *)(message + 1), .message = message, .holders = 1};
    *message = (mpidata_map_head){.magic = MPIDATA_MAP_MAGIC, .number = map->number, .count = n};
    mpidata_copy_indices(sizeof *indices, map->indices, indices, n, -base);
    if (n) mpidata_range_of_indices(sizeof *map->indices, map->indices, n, &map->least, &map->greatest);
    if (map->least >= 0) *made = map;
    if (*made) return MPIDATA_SUCCESS;
    const int status = refuse_negative(map, base, advice);
    free_memory(map);
    return status;
}

int mpidata_map_make(int64_t n, const int64_t *indices, mpidata_map **map, const char **advice) {
    return make(n, indices, 0, map, advice);
}

void mpidata_map_hold(mpidata_map *map) { map->holders++; }

void mpidata_map_let_go(mpidata_map *map) {
    if (--map->holders) return;
    if (map->sent && forget) forget(map);
    free_memory(map);
}

static int is_same(const mpidata_map *map, int64_t n, const int64_t *indices, int64_t base) {
    if (map->n != n) return 0;
    if (!base) return !n || !memcmp(map->indices, indices, (size_t)n * sizeof *indices);
    for (int64_t i = 0; i < n; i++)
        if (map->indices[i] != indices[i] - base) return 0;
    return 1;
}

int mpidata_map_remember(int64_t n, const int64_t *indices, int64_t base, mpidata_map **map, const char **advice) {
    int at = 0;
    while (at < REMEMBERED_MAX && remembered[at] && (n && indices ? !is_same(remembered[at], n, indices, base) : remembered[at]->n != n))
        at++;
    if (at == REMEMBERED_MAX || !remembered[at]) {
        MPIDATA_TRY(make(n, indices, base, map, advice));
        if (at == REMEMBERED_MAX) mpidata_map_let_go(remembered[--at]);
    } else {
        *map = remembered[at];
    }
    memmove(remembered + 1, remembered, (size_t)at * sizeof(mpidata_map *));
    remembered[0] = *map;
    return MPIDATA_SUCCESS;
}

void mpidata_maps_open(void (*by)(const mpidata_map *map)) { forget = by; }

void mpidata_maps_close(void) {
    for (int i = 0; i < REMEMBERED_MAX && remembered[i]; i++) {
        mpidata_map_let_go(remembered[i]);
        remembered[i] = NULL;
    }
    forget = NULL;
}

/* -- checks --------------------------------------------------------------------------------------------------------- */

static int compare(const void *one, const void *other) {
    const int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

/* A row that is in a map twice; -1: there is none, -2: memory is exhausted. Most maps ascend. */
static int64_t row_twice(const mpidata_map *map) {
    int64_t i = 1, row = -1;
    while (i < map->n && map->indices[i] > map->indices[i - 1]) i++;
    if (i >= map->n) return -1;
    int64_t *sorted = malloc((size_t)map->n * sizeof *sorted);
    if (!sorted) return -2;
    memcpy(sorted, map->indices, (size_t)map->n * sizeof *sorted);
    qsort(sorted, (size_t)map->n, sizeof *sorted, compare);
    for (i = 1; i < map->n && row < 0; i++)
        if (sorted[i] == sorted[i - 1]) row = sorted[i];
    free(sorted);
    return row;
}

static int check_distinct(const char *field, const mpidata_map *map, const char **advice) {
    if (map->checked) return MPIDATA_SUCCESS;
    const int64_t row = row_twice(map);
    *advice = "Leave the rows of other ranks out of the map and of the values.";
    if (row >= 0) return mpidata_error(MPIDATA_ERR_BLOCK, "Field '%s': the map has row %lld twice", field, (long long)row);
    *advice = "A map needs 8 bytes per row.";
    if (row < -1) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a map of %lld rows", (long long)map->n);
    ((mpidata_map *)(uintptr_t)map)->checked = 1;
    return MPIDATA_SUCCESS;
}

int mpidata_rows_check(const mpidata_plan *plan, const mpidata_put_arguments *put, const mpidata_block *block, const char **advice) {
    const mpidata_map *map = put->map;
    *advice = "Pass a map of mpidata_map_create, or use mpidata_put.";
    if (!map) return mpidata_error(MPIDATA_ERR_ARGUMENT, "Field '%.100s': map is NULL", put->field);
    const mpidata_field *field = plan ? &plan->fields[block->field] : NULL;
    *advice = "Declare its rows in the job file, or use mpidata_put.";
    if (!put->ndim) return mpidata_error(MPIDATA_ERR_SHAPE, "Field '%.100s' is a scalar, which has no rows", put->field);
    const int rows = field ? mpidata_row_dimension(field) : 0;
    *advice = "Put as many rows as the map has, in its order.";
    if (field && put->shape[rows] != map->n)
        return mpidata_error(MPIDATA_ERR_SHAPE, "Field '%s': shape[%d] is %lld, but the map has %lld rows", field->name, rows,
                             (long long)put->shape[rows], (long long)map->n);
    if (!field || !map->n) return MPIDATA_SUCCESS;
    int64_t most = field->varying < 0 ? field->shape[0] : plan->lengths[field->length].at_most;
    *advice = "Make the map with the numbers of the rows of this field.";
    if (most && map->greatest >= most)
        return mpidata_error(MPIDATA_ERR_BLOCK, "Field '%s': the map has row %lld, but the field has %s%lld rows, which are counted from 0",
                             field->name, (long long)map->greatest, field->varying < 0 ? "" : "at most ", (long long)most);
    *advice = "Use several maps, of some of the rows each.";
    if ((size_t)map->n > (INT_MAX - sizeof(mpidata_map_head)) / sizeof *map->indices)
        return mpidata_error(MPIDATA_ERR_SHAPE, "Field '%s': a map of %lld rows is larger than a message", field->name, (long long)map->n);
    return check_distinct(field->name, map, advice);
}

int mpidata_local_numbers_check(const mpidata_plan *plan, const mpidata_put_arguments *put, const mpidata_block *block,
                                const char **advice) {
    if (!plan) return MPIDATA_SUCCESS;
    const mpidata_field *field = &plan->fields[block->field];
    const mpidata_map *map = put->map;
    *advice = "Declare `index: <length>` for it in the job file, or use mpidata_put.";
    if (field->index_of < 0) return mpidata_error(MPIDATA_ERR_ARGUMENT, "Field '%s' has no index: its values are not row numbers", field->name);
    const int64_t elements = mpidata_block_elements(block);
    if (!map || !elements) return MPIDATA_SUCCESS;
    int64_t least, greatest;
    mpidata_range_of_indices(field->element_size, put->values, elements, &least, &greatest);
    const int low = least < field->base;
    *advice = "The map must have all rows of this rank, ghost rows included.";
    if (low || greatest - field->base >= map->n)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "Field '%s' has the local number %lld, but the map has %lld rows, which are counted from %d",
                             field->name, (long long)(low ? least : greatest), (long long)map->n, field->base);
    *advice = "Declare it as int64.";
    if (field->element_size == sizeof(int32_t) && map->greatest > INT32_MAX - field->base)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "Field '%s' of int32 cannot hold row %lld of the map", field->name, (long long)map->greatest);
    return MPIDATA_SUCCESS;
}
