#include "maps/kept.h"

#include <stdlib.h>
#include <string.h>

#include "containers/array.h"

enum { RUNS_PAY = 4 }; /* mean rows of a run from which on runs are worthwhile */

static int64_t n_taken; /* ever */

static void free_map(mpidata_kept_map *map) {
    for (int i = 0; i < MPIDATA_KEPT_SETS; i++) free(map->sets[i].ids);
    free(map->indices);
    free(map->runs);
    free(map);
}

/* If memory is exhausted, the rows are copied one by one. */
static void note_runs(mpidata_kept_map *map) {
    if (map->n_runs > map->n / RUNS_PAY) return;
    mpidata_run *run = map->runs = malloc((size_t)map->n_runs * sizeof *run);
    for (int64_t i = 0, n; run && i < map->n; i += n) {
        for (n = 1; i + n < map->n && map->indices[i + n] == map->indices[i] + (uint64_t)n;) n++;
        *run++ = (mpidata_run){map->indices[i], (uint32_t)n};
    }
}

/* The place of the map with this number, or where it would be. Most come in order. */
static int64_t place_of(const mpidata_kept_maps *kept, int64_t number) {
    int64_t low = 0, high = kept->n;
    if (high && kept->list[high - 1]->number < number) return high;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (kept->list[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

mpidata_kept_map *mpidata_kept_find(const mpidata_kept_maps *kept, int64_t number) {
    const int64_t at = place_of(kept, number);
    return at < kept->n && kept->list[at]->number == number ? kept->list[at] : NULL;
}

void mpidata_kept_let_go(mpidata_kept_map *map) {
    if (!--map->uses && map->forgotten) free_map(map);
}

static void forget(mpidata_kept_map *map) {
    map->forgotten = 1;
    if (!map->uses) free_map(map);
}

void mpidata_kept_clear(mpidata_kept_maps *kept) {
    for (int64_t i = 0; i < kept->n; i++) forget(kept->list[i]);
    free(kept->list);
    *kept = (mpidata_kept_maps){0};
}

static int forget_numbers(mpidata_kept_maps *kept, const int64_t *numbers, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = place_of(kept, numbers[i]);
        if (at == kept->n || kept->list[at]->number != numbers[i])
            return mpidata_error(MPIDATA_ERR_WIRE, "Map %lld must be forgotten, but has not come", (long long)numbers[i]);
        forget(kept->list[at]);
        kept->n--;
        memmove(kept->list + at, kept->list + at + 1, (size_t)(kept->n - at) * sizeof *kept->list);
    }
    return MPIDATA_SUCCESS;
}

static mpidata_kept_map *new_map(const mpidata_map_head *head, const int64_t *indices) {
    mpidata_kept_map *map = calloc(1, sizeof *map);
    if (!map || !(map->indices = malloc((size_t)head->count * sizeof *map->indices))) {
        free(map);
        return NULL;
    }
    map->number = head->number;
    map->id = ++n_taken;
    map->n = head->count;
    for (int64_t i = 0; i < map->n; i++) {
        map->greatest = indices[i] > map->greatest ? indices[i] : map->greatest;
        map->indices[i] = indices[i] < UINT32_MAX ? (uint32_t)indices[i] : UINT32_MAX;
        map->n_runs += !i || indices[i] != indices[i - 1] + 1;
    }
    note_runs(map);
    return map;
}

int mpidata_kept_take(mpidata_kept_maps *kept, const mpidata_map_head *head, const int64_t *indices) {
    if (head->forgets) return forget_numbers(kept, indices, head->count);
    const int64_t at = place_of(kept, head->number);
    if (at < kept->n && kept->list[at]->number == head->number)
        return mpidata_error(MPIDATA_ERR_WIRE, "Map %lld has come a second time", (long long)head->number);
    mpidata_kept_map *map = new_map(head, indices);
    if (!map || !mpidata_array_reserve(&kept->list, &kept->room, kept->n + 1, 4, sizeof(mpidata_kept_map *))) {
        if (map) free_map(map);
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a map of %lld rows", (long long)head->count);
    }
    memmove(kept->list + at + 1, kept->list + at, (size_t)(kept->n - at) * sizeof *kept->list);
    kept->list[at] = map;
    kept->n++;
    return MPIDATA_SUCCESS;
}
