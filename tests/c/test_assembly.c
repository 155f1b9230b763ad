#include <string.h>

#include "receive/assembly/assembly.h"
#include "check.h"
#include "example_plan.h"

static mpidata_plan plan;

static mpidata_block block(int field, int ndim, int64_t s0, int64_t s1, int64_t s2, int64_t n0, int64_t n1, int64_t n2) {
    mpidata_block b = {.field = field, .ndim = ndim, .start = {s0, s1, s2}, .shape = {n0, n1, n2}};
    return b;
}

/* Every block of every shape of a 2 x 3 x 4 field is copied to its place. */
static void copies(void) {
    const mpidata_field *field = &plan.fields[2];
    for (int code = 0; code < 2 * 3 * 4 * 2 * 3 * 4; code++) {
        int64_t s0 = code % 2, s1 = code / 2 % 3, s2 = code / 6 % 4;
        int64_t n0 = code / 24 % 2 + 1, n1 = code / 48 % 3 + 1, n2 = code / 144 + 1;
        if (s0 + n0 > 2 || s1 + n1 > 3 || s2 + n2 > 4) continue;
        mpidata_block b = block(2, 3, s0, s1, s2, n0, n1, n2);
        char target[24], values[24];
        memset(target, 0, sizeof target);
        for (int i = 0; i < 24; i++) values[i] = (char)(i + 1);
        mpidata_block_copy(field, &b, target, values);
        int next = 1;
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 3; j++)
                for (int k = 0; k < 4; k++) {
                    int inside = i >= s0 && i < s0 + n0 && j >= s1 && j < s1 + n1 && k >= s2 && k < s2 + n2;
                    CHECK(target[12 * i + 4 * j + k] == (inside ? next++ : 0));
                }
    }
    int64_t offset;
    mpidata_block rows = block(0, 2, 1, 0, 0, 2, 6, 0), columns = block(0, 2, 0, 1, 0, 4, 2, 0);
    mpidata_block row = block(0, 2, 2, 1, 0, 1, 3, 0);
    CHECK(mpidata_block_contiguous(&plan.fields[0], &rows, &offset) && offset == 6);
    CHECK(!mpidata_block_contiguous(&plan.fields[0], &columns, &offset));
    CHECK(mpidata_block_contiguous(&plan.fields[0], &row, &offset) && offset == 13);
}

static void announce(mpidata_assemblies *all, mpidata_assembly *a, const mpidata_block *b, int rank) {
    CHECK(!mpidata_assembly_hear(all, a, rank));
    CHECK(!mpidata_assembly_announce(all, a, b, rank));
}

static mpidata_assembly *next_of(mpidata_assemblies *all) {
    static int64_t step;
    return mpidata_assembly_new(all, 0, 9, 1, step++, 17, 0);
}

/* Halves of two ranks that overlap or leave a hole are detected once all elements, or too many, are announced. */
static void overlaps(void) {
    mpidata_assemblies all;
    mpidata_assemblies_open(&all, &plan);
    mpidata_block upper = block(0, 2, 0, 0, 0, 2, 6, 0), lower = block(0, 2, 2, 0, 0, 2, 6, 0), middle = block(0, 2, 1, 0, 0, 2, 6, 0);
    mpidata_block pressure = block(1, 0, 0, 0, 0, 0, 0, 0), cells = block(2, 3, 0, 0, 0, 2, 3, 4);
    mpidata_assembly *a = next_of(&all);
    announce(&all, a, &upper, 0);
    CHECK(!mpidata_assembly_check(&all, a));
    announce(&all, a, &pressure, 0);
    announce(&all, a, &middle, 1);
    CHECK(!mpidata_assembly_check(&all, a)); /* a field is missing */
    announce(&all, a, &cells, 1);
    CHECK(mpidata_assembly_check(&all, a) == MPIDATA_ERR_BLOCK);
    CHECK(strstr(mpidata_last_error(), "'temperature' that ranks 0 and 1 of the group"));
    a = next_of(&all);
    announce(&all, a, &pressure, 1);
    announce(&all, a, &pressure, 1); /* one field twice, and no other field */
    CHECK(mpidata_assembly_check(&all, a) == MPIDATA_ERR_BLOCK);
    CHECK(strstr(mpidata_last_error(), "'pressure' that ranks 1 and 1 of the group"));
    a = next_of(&all);
    announce(&all, a, &upper, 0);
    announce(&all, a, &lower, 1);
    announce(&all, a, &pressure, 0);
    announce(&all, a, &cells, 1);
    CHECK(!mpidata_assembly_check(&all, a));
    mpidata_assembly *b = next_of(&all); /* the same layout except for one block */
    announce(&all, b, &upper, 0);
    announce(&all, b, &middle, 1);
    announce(&all, b, &pressure, 0);
    announce(&all, b, &cells, 1);
    CHECK(mpidata_assembly_check(&all, b) == MPIDATA_ERR_BLOCK);
    b = next_of(&all); /* twice a block that the layout has once */
    announce(&all, b, &upper, 0);
    announce(&all, b, &pressure, 0);
    announce(&all, b, &pressure, 0);
    CHECK(mpidata_assembly_check(&all, b) == MPIDATA_ERR_BLOCK);
    mpidata_assemblies_close(&all);
}

enum { SIDE = 16, MANY = SIDE * SIDE * SIDE };

static mpidata_assembly *sample_of_many(mpidata_assemblies *all, unsigned *seed, int shift) {
    mpidata_assembly *a = next_of(all);
    static int order[MANY];
    for (int i = 0; i < MANY; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        const int other = (int)(*seed >> 8) % (i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    for (int i = 0; i < MANY; i++) {
        const int rank = order[i], cell = (rank + shift) % MANY;
        mpidata_block b = block(0, 3, cell % SIDE * 2, cell / SIDE % SIDE * 3, cell / SIDE / SIDE * 4, 2, 3, 4);
        announce(all, a, &b, rank);
        CHECK(!mpidata_assembly_check(all, a));
    }
    a->outstanding = 0;
    CHECK(mpidata_assembly_whole(all, a));
    return a;
}

/* The blocks of 4096 ranks are compared, in n log n comparisons, only if they differ from those before. */
static void comparisons(void) {
    static const char text[] = "mpidata-plan 1\nrun /run\nfolder /folder\nseed 7\nworld 4098\ntrainers 1\ngroups 1\nranks_per_group 4096\n"
                               "in_flight 4\nsimulations 10\npolicy fifo\ncapacity 100\nwatermark 20\ntail repeat\n"
                               "field u float32 3 32 48 64\nprogram solver\nargument ./solver\n";
    mpidata_plan many;
    mpidata_assemblies all;
    unsigned seed = 7;
    CHECK(mpidata_plan_parse(text, &many) == MPIDATA_SUCCESS);
    mpidata_assemblies_open(&all, &many);
    for (int shift = 0; shift < 2; shift++) {
        const int64_t before = all.compared;
        mpidata_assembly_free(&all, sample_of_many(&all, &seed, shift));
        const int64_t first = all.compared - before;
        CHECK(first > 0 && first < (int64_t)MANY * 12 * 4); /* along three dimensions, and by field */
        for (int i = 0; i < 3; i++) mpidata_assembly_free(&all, sample_of_many(&all, &seed, shift));
        CHECK(all.compared == before + first);
    }
    mpidata_assemblies_close(&all);
    mpidata_plan_free(&many);
}

int main(void) {
    CHECK(mpidata_plan_parse(example_plan, &plan) == MPIDATA_SUCCESS);
    copies();
    overlaps();
    comparisons();
    mpidata_assemblies all;
    mpidata_assemblies_open(&all, &plan);
    CHECK(!mpidata_assembly_find(&all, 0, 9, 1, 2));
    mpidata_assembly *a = mpidata_assembly_new(&all, 0, 9, 1, 2, 17, 0), *other = mpidata_assembly_new(&all, 0, 9, 2, 1, 18, 0);
    CHECK(mpidata_assembly_find(&all, 0, 9, 1, 2) == a && mpidata_assembly_find(&all, 0, 9, 2, 1) == other);
    CHECK(all.count == 2);
    CHECK(!mpidata_assembly_find(&all, 3, 9, 1, 2)); /* another group's try of the same simulation */
    CHECK(!mpidata_assembly_find(&all, 0, 10, 1, 2)); /* another try of the same group */

    mpidata_block upper = block(0, 2, 0, 0, 0, 2, 6, 0), lower = block(0, 2, 2, 0, 0, 2, 6, 0);
    mpidata_block pressure = block(1, 0, 0, 0, 0, 0, 0, 0), cells = block(2, 3, 0, 0, 0, 2, 3, 4);
    announce(&all, a, &upper, 0);
    announce(&all, a, &lower, 1);
    announce(&all, a, &pressure, 0);
    a->outstanding = 0; /* all announced blocks in place, the third field still missing */
    CHECK(!mpidata_assembly_whole(&all, a));
    announce(&all, a, &cells, 0);
    CHECK(!mpidata_assembly_whole(&all, a));
    a->outstanding = 0;
    CHECK(mpidata_assembly_whole(&all, a));
    mpidata_assembly_free(&all, a);
    CHECK(!mpidata_assembly_find(&all, 0, 9, 1, 2) && mpidata_assembly_find(&all, 0, 9, 2, 1) == other);
    CHECK(all.count == 1);
    mpidata_assemblies_close(&all);
    CHECK(all.count == 0);
    mpidata_plan_free(&plan);
    return 0;
}
