#include "receive/assembly/overlap.h"

#include <stdlib.h>

enum { DEEPEST = 64 }; /* nesting of cuts: a grid needs as many levels as it has dimensions */

/* Extent of a block in the current dimension. */
typedef struct {
    int64_t start, end;
    int block;
    int64_t *compared; /* here, because the sort has no other argument */
} interval;

typedef struct {
    const mpidata_block *blocks;
    interval *intervals;
    int ndim;
    mpidata_overlap *found;
} search;

static int by_start(const void *one, const void *other) {
    const interval *a = one, *b = other;
    ++*a->compared;
    return a->start < b->start ? -1 : a->start > b->start;
}

/* End of the intervals from `begin` on that no plane separates. */
static int end_of_cut(const interval *all, int begin, int n) {
    int64_t end = all[begin].end;
    int next = begin + 1;
    for (; next < n && all[next].start < end; next++)
        if (all[next].end > end) end = all[next].end;
    return next;
}

static int overlap(const mpidata_block *a, const mpidata_block *b) {
    for (int d = 0; d < a->ndim; d++)
        if (a->start[d] + a->shape[d] <= b->start[d] || b->start[d] + b->shape[d] <= a->start[d]) return 0;
    return 1;
}

/* Compare each with those that begin before it ends. */
static int compare_all(const search *in, const interval *all, int n) {
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n && all[j].start < all[i].end; j++) {
            const int a = all[i].block, b = all[j].block;
            in->found->compared++;
            if (!overlap(&in->blocks[a], &in->blocks[b])) continue;
            in->found->one = a < b ? a : b;
            in->found->other = a < b ? b : a;
            return 1;
        }
    return 0;
}

/* Cut them at each separating plane in dimension d, then the parts in the next dimension; `uncut` dimensions in a row had no
 * such plane. Returns whether two overlap. */
static int cut(const search *in, interval *all, int n, int d, int uncut, int depth) {
    if (n < 2) return 0;
    if (uncut == in->ndim || depth == DEEPEST) return compare_all(in, all, n);
    for (int i = 0; i < n; i++) {
        const mpidata_block *block = &in->blocks[all[i].block];
        all[i].start = block->start[d];
        all[i].end = block->start[d] + block->shape[d];
    }
    qsort(all, (size_t)n, sizeof *all, by_start);
    for (int begin = 0, end; begin < n; begin = end) {
        end = end_of_cut(all, begin, n);
        if (cut(in, all + begin, end - begin, (d + 1) % in->ndim, end - begin < n ? 0 : uncut + 1, depth + 1)) return 1;
    }
    return 0;
}

/* Compare the blocks that have elements, by field. */
static int by_field(const search *in, int n) {
    int kept = 0;
    for (int i = 0; i < n; i++) {
        const mpidata_block *block = &in->blocks[i];
        if (mpidata_block_elements(block))
            in->intervals[kept++] = (interval){block->field, block->field + 1, i, &in->found->compared};
    }
    qsort(in->intervals, (size_t)kept, sizeof *in->intervals, by_start);
    return kept;
}

int mpidata_overlap_find(const mpidata_block *blocks, int n, mpidata_overlap *found) {
    *found = (mpidata_overlap){.one = -1, .other = -1};
    search in = {blocks, calloc((size_t)n + 1, sizeof(interval)), 0, found};
    if (!in.intervals) return MPIDATA_ERR_MEMORY;
    const int kept = by_field(&in, n);
    for (int begin = 0, end, done = 0; begin < kept && !done; begin = end) {
        end = end_of_cut(in.intervals, begin, kept);
        in.ndim = blocks[in.intervals[begin].block].ndim;
        done = cut(&in, in.intervals + begin, end - begin, 0, 0, 0);
    }
    free(in.intervals);
    return MPIDATA_SUCCESS;
}
