#include "receive/assembly/layout.h"

#include <stdlib.h>
#include <string.h>

#include "containers/array.h"

int mpidata_layout_has(const mpidata_layout *layout, int rank_in_group, int number, const mpidata_block *block) {
    if (!layout->known || number >= layout->first[rank_in_group + 1] - layout->first[rank_in_group]) return 0;
    const mpidata_block *known = &layout->blocks[layout->first[rank_in_group] + number];
    if (known->field != block->field) return 0;
    for (int d = 0; d < block->ndim; d++)
        if (known->start[d] != block->start[d] || known->shape[d] != block->shape[d]) return 0;
    return 1;
}

static int has_room(mpidata_layout *layout, int ranks, int n) {
    if (!layout->first && !(layout->first = calloc((size_t)ranks + 1, sizeof *layout->first))) return 0;
    return mpidata_array_reserve(&layout->blocks, &layout->room, n, 0, sizeof *layout->blocks);
}

void mpidata_layout_set(mpidata_layout *layout, int ranks, const mpidata_block *blocks, const int *ranks_in_group, int n) {
    layout->version++;
    if (!(layout->known = has_room(layout, ranks, n))) return;
    int *first = layout->first;
    memset(first, 0, ((size_t)ranks + 1) * sizeof *first);
    for (int i = 0; i < n; i++) first[ranks_in_group[i]]++;
    for (int r = 0, begin = 0; r <= ranks; r++) { /* turn counts into ends: blocks are inserted from the last one */
        begin += first[r];
        first[r] = begin;
    }
    for (int i = n; i-- > 0;) layout->blocks[--first[ranks_in_group[i]]] = blocks[i];
}

void mpidata_layout_free(mpidata_layout *layout) {
    free(layout->first);
    free(layout->blocks);
}
