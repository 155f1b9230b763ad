#include <string.h>

#include "receive/assembly.h"
#include "check.h"
#include "example_plan.h"

static mpidata_plan plan;

static mpidata_block block(int field, int ndim, int64_t s0, int64_t s1, int64_t s2, int64_t n0, int64_t n1, int64_t n2) {
    mpidata_block b = {.field = field, .ndim = ndim, .start = {s0, s1, s2}, .shape = {n0, n1, n2}};
    return b;
}

/* Every block of every shape of a 2 x 3 x 4 field lands where it belongs. */
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

int main(void) {
    CHECK(mpidata_plan_parse(example_plan, &plan) == MPIDATA_SUCCESS);
    copies();
    mpidata_assemblies all;
    mpidata_assemblies_open(&all, &plan);
    CHECK(!mpidata_assembly_find(&all, 0, 9, 1, 2));
    mpidata_assembly *a = mpidata_assembly_new(&all, 0, 9, 1, 2, 17, 0), *other = mpidata_assembly_new(&all, 0, 9, 2, 1, 18, 0);
    CHECK(mpidata_assembly_find(&all, 0, 9, 1, 2) == a && mpidata_assembly_find(&all, 0, 9, 2, 1) == other);
    CHECK(all.count == 2);
    CHECK(!mpidata_assembly_find(&all, 3, 9, 1, 2)); /* another group's try of the same simulation */
    CHECK(!mpidata_assembly_find(&all, 0, 10, 1, 2)); /* another try of the same group */

    mpidata_block upper = block(0, 2, 0, 0, 0, 2, 6, 0), lower = block(0, 2, 2, 0, 0, 2, 6, 0);
    mpidata_block overlapping = block(0, 2, 1, 5, 0, 2, 1, 0);
    mpidata_block pressure = block(1, 0, 0, 0, 0, 0, 0, 0), cells = block(2, 3, 0, 0, 0, 2, 3, 4);
    CHECK(!mpidata_assembly_announce(&all, a, &upper, 3));
    CHECK(mpidata_assembly_announce(&all, a, &overlapping, 4) == MPIDATA_ERR_BLOCK);
    CHECK(strstr(mpidata_last_error(), "ranks 3 and 4") && strstr(mpidata_last_error(), "temperature"));
    CHECK(!mpidata_assembly_announce(&all, a, &lower, 4));
    CHECK(!mpidata_assembly_announce(&all, a, &pressure, 3));
    CHECK(mpidata_assembly_announce(&all, a, &pressure, 4) == MPIDATA_ERR_BLOCK);
    a->outstanding = 0; /* all announced blocks in place, the third field still missing */
    CHECK(!mpidata_assembly_whole(&all, a));
    CHECK(!mpidata_assembly_announce(&all, a, &cells, 3));
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
