/* Parts of the fields that vary, as put by the ranks of a group: the parts of a sample are joined when it is copied, in the
 * order of the ranks, and of each rank's calls. Not thread-safe. */
#ifndef MPIDATA_PARTS_H
#define MPIDATA_PARTS_H

#include "base/heap.h"
#include "wire/wire.h"

typedef struct {
    mpidata_block block;
    int rank, number; /* in the order in which they came */
    int64_t before;   /* rows of the field in the parts before it, once they are joined */
    char *values;     /* contiguous */
} mpidata_part;

typedef struct mpidata_parts {
    mpidata_part *list;
    int n;
    int64_t allocated;
    int64_t *numbers; /* once the sample is whole: its plan.n_lengths lengths, and for each optional field whether it was put */
    size_t bytes;     /* of the values */
    int per_simulation; /* these are constants, whose numbers have -1 for lengths that none of them has */
    const struct mpidata_parts *constants; /* those of the sample's simulation; NULL: there are none */
} mpidata_parts;

/* Add a part, with memory for its values; returns its number until they are joined, or -1 if memory is exhausted. The parts of
 * a rank come in the order of its calls. */
int mpidata_parts_add(mpidata_parts *parts, mpidata_heap *heap, const mpidata_plan *plan, const mpidata_block *block, int rank);

/* Add all values of a field that varies, contiguous, as its only part. */
int mpidata_parts_fill(mpidata_parts *parts, mpidata_heap *heap, const mpidata_plan *plan, int field, int64_t extent, const void *values);

/* Forget them. */
void mpidata_parts_clear(mpidata_parts *parts, mpidata_heap *heap);

/* Forget those that were put by maps, whose rows are in their places. */
void mpidata_parts_drop_mapped(mpidata_parts *parts, mpidata_heap *heap, const mpidata_plan *plan);

/* All have come: put them in order, and find the lengths, and which optional fields that vary were put; the others have the
 * length of other fields, and zeros. Indices that count from their rank's part on then count along all parts. Refuses fields
 * whose common length differs, and indices beyond their length. */
int mpidata_parts_join(mpidata_parts *parts, const mpidata_plan *plan);

/* The same if the numbers are already known. */
int mpidata_parts_join_known(mpidata_parts *parts, const mpidata_plan *plan, const int64_t *numbers);

/* The place of a sample's values in a batch: by length, the first index and the total. at NULL: from 0 on. */
typedef struct {
    const int64_t *at, *all;
    int shifted;             /* values of index fields grow by `at` */
    int64_t place;           /* of the sample in a padded batch, in which each has `all`; 0 in a packed one */
    const void *const *fill; /* of a padded batch: by field, the element that fills the rest; NULL: it is packed */
} mpidata_packing;

/* The parts of one field, when they are in order: *n of them. */
const mpidata_part *mpidata_parts_of(const mpidata_parts *parts, int field, int *n);

/* Copy the values of all fields that vary to their places in a batch: fields[i] is the address of field i, whose dimension that
 * varies has the extent `all` there; NULL: it is left out. A padded field is filled up to its extent. */
void mpidata_parts_copy(const mpidata_parts *parts, const mpidata_plan *plan, const mpidata_packing *packing, void *const *fields,
                        void *(*copy)(void *restrict, const void *restrict, size_t));

/* Copy all values of one field, as the sample has them, to separate memory; zeros if it was not put. */
void mpidata_parts_join_field(const mpidata_parts *parts, const mpidata_plan *plan, int field, char *target);

#endif
