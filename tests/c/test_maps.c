/* Maps on a trainer are kept while they are needed and checked once per set, and rows are copied to their places. */
#include <string.h>

#include "base/random.h"
#include "check.h"
#include "maps/cover.h"

static mpidata_kept_map *take(mpidata_kept_maps *kept, int64_t number, int64_t n, const int64_t *indices) {
    const mpidata_map_head head = {.magic = MPIDATA_MAP_MAGIC, .number = number, .count = n};
    CHECK(!mpidata_kept_take(kept, &head, indices));
    mpidata_kept_map *map = mpidata_kept_find(kept, number);
    CHECK(map && map->n == n);
    for (int64_t i = 0; i < n; i++) CHECK(map->indices[i] == indices[i]);
    return map;
}

static int forget(mpidata_kept_maps *kept, int64_t number) {
    return mpidata_kept_take(kept, &(mpidata_map_head){.magic = MPIDATA_MAP_MAGIC, .forgets = 1, .count = 1}, &number);
}

static void they_are_kept_until_nobody_needs_them(void) {
    mpidata_kept_maps kept = {0};
    const int64_t order[] = {3, 1, 7, 2, 5};
    for (int i = 0; i < 5; i++) CHECK(take(&kept, order[i], 3, (int64_t[]){0, 2, order[i]})->greatest >= 2);
    for (int i = 0; i < 5; i++) CHECK(mpidata_kept_find(&kept, order[i])->indices[2] == order[i]);
    CHECK(!mpidata_kept_find(&kept, 4) && !mpidata_kept_find(&kept, 8));
    mpidata_kept_map *used = mpidata_kept_find(&kept, 2);
    used->uses = 2;
    CHECK(!forget(&kept, 2) && !forget(&kept, 3) && kept.n == 3 && !mpidata_kept_find(&kept, 2));
    mpidata_kept_let_go(used);
    CHECK(used->indices[2] == 2); /* by an incomplete sample */
    mpidata_kept_let_go(used);
    CHECK(forget(&kept, 3) == MPIDATA_ERR_WIRE && strstr(mpidata_last_error(), "Map 3 must be forgotten, but has not come"));
    const mpidata_map_head again = {.magic = MPIDATA_MAP_MAGIC, .number = 7, .count = 1};
    CHECK(mpidata_kept_take(&kept, &again, &(int64_t){1}) == MPIDATA_ERR_WIRE);
    mpidata_kept_clear(&kept);
    CHECK(kept.n == 0 && !kept.list);
}

static void what_is_wrong_is_named_by_row(void) {
    mpidata_kept_maps kept = {0};
    mpidata_kept_map *maps[] = {take(&kept, 1, 2, (int64_t[]){4, 0}), take(&kept, 2, 3, (int64_t[]){1, 3, 2}), NULL};
    const int ranks[] = {0, 2, 5};
    CHECK(!mpidata_maps_cover(maps, ranks, 2, 5, "u"));
    maps[2] = take(&kept, 3, 1, (int64_t[]){3});
    CHECK(mpidata_maps_cover(maps, ranks, 3, 6, "u") == MPIDATA_ERR_BLOCK);
    CHECK(!strcmp(mpidata_last_error(), "Row 3 of field 'u' was put twice, by ranks 2 and 5 of the group"));
    maps[2] = take(&kept, 4, 1, (int64_t[]){9});
    CHECK(mpidata_maps_cover(maps, ranks, 3, 6, "u") == MPIDATA_ERR_BLOCK);
    CHECK(!strncmp(mpidata_last_error(), "Row 5 of field 'u' is missing: all ranks have put 6 rows, and rank 5 of", 71));
    maps[1] = take(&kept, 5, 2, (int64_t[]){1, 3});
    CHECK(mpidata_maps_cover(maps, ranks, 2, 5, "u") == MPIDATA_ERR_BLOCK);
    CHECK(!strcmp(mpidata_last_error(), "Row 2 of field 'u' is missing: the maps of all ranks have 4 of its 5 rows"));
    mpidata_kept_clear(&kept);
}

/* A checked set is not checked again, but another set with the same first map is. */
static void a_set_is_checked_once(void) {
    mpidata_kept_maps kept = {0};
    mpidata_kept_map *maps[] = {take(&kept, 1, 1, (int64_t[]){0}), take(&kept, 2, 2, (int64_t[]){1, 2})};
    const int ranks[] = {0, 1};
    CHECK(!mpidata_maps_cover(maps, ranks, 2, 3, "u"));
    maps[1]->indices[1] = 1;
    CHECK(!mpidata_maps_cover(maps, ranks, 2, 3, "u"));
    for (int64_t number = 3; number < 9; number++) {
        maps[1] = take(&kept, number, 2, (int64_t[]){2, number % 2 + 1});
        CHECK(!mpidata_maps_cover(maps, ranks, 2, 3, "u") == !(number % 2));
    }
    CHECK(maps[0]->next_set < MPIDATA_KEPT_SETS);
    mpidata_kept_clear(&kept);
}

/* Rows of all sizes, for maps with runs and in any order, with dimensions before the rows. */
static void rows_go_to_their_places(void) {
    enum { ROWS = 60, OUTER = 3, MOST = 24 };
    static char values[OUTER * ROWS * MOST], target[OUTER * ROWS * MOST];
    mpidata_random random;
    mpidata_random_seed(&random, 5, 0);
    for (size_t i = 0; i < sizeof values; i++) values[i] = (char)mpidata_random_below(&random, 256);
    for (int by_run = 0; by_run < 2; by_run++) {
        int64_t indices[ROWS];
        mpidata_kept_maps kept = {0};
        for (int64_t i = 0; i < ROWS; i++) indices[i] = by_run ? (i + 20) % ROWS : i * 7 % ROWS;
        const mpidata_kept_map *map = take(&kept, 1, ROWS, indices);
        CHECK(map->n_runs == (by_run ? 2 : ROWS) && !map->runs == !by_run);
        for (size_t row = 1; row <= MOST; row++) {
            memset(target, 0, sizeof target);
            mpidata_scatter_rows(map, target, ROWS, values, OUTER, row);
            for (size_t o = 0; o < OUTER; o++)
                for (size_t i = 0; i < ROWS; i++)
                    CHECK(!memcmp(target + (o * ROWS + (size_t)indices[i]) * row, values + (o * ROWS + i) * row, row));
        }
        mpidata_kept_clear(&kept);
    }
}

int main(void) {
    they_are_kept_until_nobody_needs_them();
    what_is_wrong_is_named_by_row();
    a_set_is_checked_once();
    rows_go_to_their_places();
    return 0;
}
