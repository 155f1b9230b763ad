#include "check.h"
#include "receive/assembly/overlap.h"

static unsigned seed = 1;

static int chance(int below) {
    seed = seed * 1664525u + 1013904223u;
    return (int)(seed >> 8) % below;
}

static int overlap(const mpidata_block *a, const mpidata_block *b) {
    if (a->field != b->field) return 0;
    for (int d = 0; d < a->ndim; d++) {
        const int64_t begin = a->start[d] > b->start[d] ? a->start[d] : b->start[d];
        const int64_t end_a = a->start[d] + a->shape[d], end_b = b->start[d] + b->shape[d];
        if (begin >= (end_a < end_b ? end_a : end_b)) return 0;
    }
    return 1;
}

static int overlapping_pairs(const mpidata_block *blocks, int n) {
    int pairs = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) pairs += overlap(&blocks[i], &blocks[j]);
    return pairs;
}

enum { MOST = 12 };

static mpidata_block random_block(int extent) {
    mpidata_block block = {.field = chance(3)};
    block.ndim = block.field; /* number 0 is a scalar */
    for (int d = 0; d < block.ndim; d++) {
        block.start[d] = chance(extent);
        block.shape[d] = chance(4);
    }
    return block;
}

/* Among random blocks, some without elements, it finds two that overlap, if there are any. */
static void like_all_pairs(void) {
    int with = 0, without = 0;
    for (int round = 0; round < 20000; round++) {
        mpidata_block blocks[MOST];
        const int n = chance(MOST), extent = 3 + chance(30);
        for (int i = 0; i < n; i++) blocks[i] = random_block(extent);
        mpidata_overlap found;
        CHECK(!mpidata_overlap_find(blocks, n, &found));
        const int pairs = overlapping_pairs(blocks, n);
        CHECK((found.one >= 0) == (pairs > 0));
        if (pairs) CHECK(found.one < found.other && overlap(&blocks[found.one], &blocks[found.other]));
        *(pairs ? &with : &without) += 1;
    }
    CHECK(with > 1000 && without > 1000);
}

/* Blocks around a hole that no plane separates, and a block within another one. */
static void without_a_plane(void) {
    mpidata_block wheel[] = {
        {.ndim = 2, .start = {0, 0}, .shape = {1, 2}}, {.ndim = 2, .start = {0, 2}, .shape = {2, 1}},
        {.ndim = 2, .start = {2, 1}, .shape = {1, 2}}, {.ndim = 2, .start = {1, 0}, .shape = {2, 1}},
        {.ndim = 2, .start = {1, 1}, .shape = {1, 1}}, {.ndim = 2, .start = {2, 2}, .shape = {1, 1}},
    };
    mpidata_overlap found;
    CHECK(!mpidata_overlap_find(wheel, 5, &found) && found.one < 0);
    CHECK(!mpidata_overlap_find(wheel, 6, &found) && found.one == 2 && found.other == 5);
}

/* One column within another, in a chain in which each cut separates only one block. */
static void deep(void) {
    enum { N = 3000 };
    static mpidata_block blocks[N + 1];
    for (int i = 0; i < N; i++) {
        blocks[i] = (mpidata_block){.ndim = 2, .start = {i / 2, i / 2}, .shape = {N - i / 2, N - i / 2}};
        blocks[i].shape[i % 2] = 1;
        blocks[i].start[1 - i % 2] += i % 2 ? 1 : 0;
        blocks[i].shape[1 - i % 2] -= i % 2 ? 1 : 0;
    }
    mpidata_overlap found;
    CHECK(!mpidata_overlap_find(blocks, N, &found) && found.one < 0);
    blocks[N] = (mpidata_block){.ndim = 2, .start = {N / 4, N / 4}, .shape = {1, 1}};
    CHECK(!mpidata_overlap_find(blocks, N + 1, &found) && found.one >= 0 && found.other == N);
}

int main(void) {
    like_all_pairs();
    without_a_plane();
    deep();
    return 0;
}
