/* Memory of samples. A slot holds one sample, and belongs to a page: one slot, or as many as a batch has samples. The memory
 * of a page is ordered by field, as in a batch: a page that was filled in order can be handed out unchanged.
 *
 * Pages are made when first needed and reused last-in first-out, so that only memory in use is touched, and warm memory
 * first. Not thread-safe. */
#ifndef MPIDATA_SLOTS_H
#define MPIDATA_SLOTS_H

#include "base/arena.h"
#include "buffer/constants/try_constants.h"

typedef struct mpidata_page mpidata_page;

/* Its address does not change. */
typedef struct {
    mpidata_page *page;
    int64_t index; /* in its page */
    double *parameters; /* plan.n_parameters */
    double *time;
    int64_t *simulation, *step;
    mpidata_moments *moments; /* plan.n_moments, of its values; none before it is whole */
    int pins;    /* copies from it in progress */
    int unowned; /* to be given back with the last pin */
    int draws;   /* of the sample; -1: not counted */
    int group;   /* that has sent it, in a replay */
    int holders, in_buffer, unseen; /* windows, and tries, that have the step (windows.h); windows in the buffer; never drawn */
    mpidata_parts parts; /* its values of the fields that vary; last, because most jobs have none */
    mpidata_try_constants *constants; /* of its simulation and try; NULL: there are none */
} mpidata_slot;

/* Memory of `count` samples: count x shape elements of each field that does not vary, aligned to 64 bytes, then
 * count x n_parameters float64, count float64 (time), count int64 (step), count int64 (simulation). */
typedef struct {
    int64_t count;
    size_t *fields; /* offsets */
    size_t tail;    /* offset of the parameters */
    size_t bytes;
} mpidata_page_layout;

struct mpidata_page {
    const mpidata_page_layout *layout;
    char *memory;
    int64_t first;  /* number of its first slot; the others follow */
    int64_t in_use; /* slots that have not been given back */
    mpidata_page *next; /* free pages */
    mpidata_slot slots[]; /* layout->count */
};

typedef struct {
    const mpidata_plan *plan;
    mpidata_arena arena;
    mpidata_heap heap; /* of parts, and of constants */
    mpidata_constants_set constants;
    int64_t alike; /* bytes of the fields that do not vary */
    mpidata_page_layout one, batch; /* batch.count 0: all pages have one slot */
    mpidata_page *free_one, *free_batch;
    mpidata_page *filling; /* page of a batch with free slots from `next` on */
    int64_t next;
    mpidata_slot **slots;
    int64_t n_slots, allocated;
} mpidata_slots;

/* Returns -1 if memory is exhausted. */
int mpidata_slots_open(mpidata_slots *slots, const mpidata_plan *plan);
void mpidata_slots_close(mpidata_slots *slots);

/* From now on use pages of `count` slots; returns -1 if memory is exhausted. */
int mpidata_slots_batch(mpidata_slots *slots, int64_t count);

/* Number of a free slot, or -1 if memory is exhausted. ahead: samples that will be drawn before this one, so that pages start
 * where batches start; -1: it will not be drawn. */
int64_t mpidata_slots_take(mpidata_slots *slots, int64_t ahead);

/* Address of the elements of a field that does not vary. */
char *mpidata_slot_field(const mpidata_slots *slots, const mpidata_slot *slot, int field);

/* A step has these constants, from now until it is given back. */
void mpidata_slot_set_constants(mpidata_slot *slot, mpidata_try_constants *constants);

/* Copy a sample into a slot: fields[i] has the values of field i (C order, its own lengths), numbers its n_numbers. Its
 * constants are those of this group, try and simulation; if there are none yet, they are made from the values. */
int mpidata_slot_fill(mpidata_slots *slots, mpidata_slot *slot, const void *const *fields, const int64_t *numbers);
int mpidata_slot_fill_constants(mpidata_slots *slots, mpidata_slot *slot, const void *const *fields, const int64_t *numbers,
                                int group, int64_t by_try, int64_t simulation);

/* Bytes of a sample's values, without its constants. */
size_t mpidata_slot_bytes(const mpidata_slots *slots, const mpidata_slot *slot);

/* Bytes of its values and lengths, which a capacity in bytes counts. */
int64_t mpidata_slot_size(const mpidata_slots *slots, const mpidata_slot *slot);

/* Copy the fields of a slot to the i-th place in a batch. */
void mpidata_slot_copy(const mpidata_slots *slots, const mpidata_slot *slot, int64_t i, const mpidata_packing *packing,
                       void *const *fields, void *(*copy)(void *restrict, const void *restrict, size_t));

/* Give a slot back now, or with its last pin. */
void mpidata_slots_give_back(mpidata_slots *slots, int64_t number);
void mpidata_slots_unpin(mpidata_slots *slots, int64_t number);

/* Append to a list of slot numbers, which grows. */
int mpidata_slots_append(int64_t **list, int64_t *n, int64_t *allocated, int64_t number);

#endif
