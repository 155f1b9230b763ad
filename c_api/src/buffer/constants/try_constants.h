/* Constants: values of the fields that are put once per simulation. Those of one try of a simulation by one group are held
 * once, as long as a sender, a step, a batch or Python refers to them. Not thread-safe. */
#ifndef MPIDATA_TRY_CONSTANTS_H
#define MPIDATA_TRY_CONSTANTS_H

#include "buffer/parts.h"

enum { MPIDATA_CONSTANTS_CHAINS = 256 };

typedef struct mpidata_try_constants {
    int group; /* -1: from a checkpoint */
    int64_t by_try, simulation;
    int references;
    int whole;
    int64_t batch;            /* the last batch that was drawn with them */
    int64_t row;              /* in the snapshot that is being taken */
    mpidata_parts parts;      /* of the fields that vary: one each when whole; and the numbers */
    char **values;            /* by field, when whole: contiguous; NULL: not a constant, or not put */
    mpidata_moments *moments; /* of the values, as for a slot */
    uint64_t hash;            /* of the values, for the journal; 0: not computed yet */
    struct mpidata_try_constants *next; /* in its chain */
} mpidata_try_constants;

typedef struct {
    const mpidata_plan *plan;
    mpidata_heap *heap;
    mpidata_try_constants *chains[MPIDATA_CONSTANTS_CHAINS];
    int64_t n;
} mpidata_constants_set;

void mpidata_constants_close(mpidata_constants_set *set);

/* New, with memory for fields that do not vary, and one reference; NULL if memory is exhausted. */
mpidata_try_constants *mpidata_constants_new(mpidata_constants_set *set, int group, int64_t by_try, int64_t simulation);

/* NULL: there are none. */
mpidata_try_constants *mpidata_constants_find(const mpidata_constants_set *set, int group, int64_t by_try,
                                              int64_t simulation);

/* The newest whole ones of a simulation; NULL: there are none. */
mpidata_try_constants *mpidata_constants_of_simulation(const mpidata_constants_set *set, int64_t simulation);

static inline mpidata_try_constants *mpidata_constants_keep(mpidata_try_constants *constants) {
    if (constants) constants->references++;
    return constants;
}

/* Drop one reference; NULL: no effect. */
void mpidata_constants_release(mpidata_constants_set *set, mpidata_try_constants *constants);

/* Forget the memory of an optional field that was not put, and does not vary. */
void mpidata_constants_leave_out(mpidata_constants_set *set, mpidata_try_constants *constants, int field);

/* All values have come: join each field into contiguous memory, and find the numbers. Refuses the same as
 * mpidata_parts_join. */
int mpidata_constants_join(mpidata_constants_set *set, mpidata_try_constants *constants);

/* Fill in all values from contiguous memory: fields[i] is that of field i, ignored unless it is a constant. numbers: as in
 * the parts; those of lengths that no constant has are ignored. */
int mpidata_constants_fill(mpidata_constants_set *set, mpidata_try_constants *constants, const void *const *fields,
                           const int64_t *numbers);

/* Bytes of one field. */
size_t mpidata_constants_bytes(const mpidata_try_constants *constants, const mpidata_plan *plan, int field);

/* Copy them to their places in a batch, as mpidata_slot_copy does; numbers: of the sample. */
void mpidata_constants_copy(const mpidata_try_constants *constants, const mpidata_plan *plan, int64_t *numbers,
                            int64_t i,
                            const mpidata_packing *packing, void *const *fields,
                            void *(*copy)(void *restrict, const void *restrict, size_t));

#endif
