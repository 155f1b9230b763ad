/* Memory of samples. Slots are made when first needed and reused last-in first-out, so that only as much memory is
 * touched as is in use, and the warm part of it first. Not thread-safe. */
#ifndef MPIDATA_SLOTS_H
#define MPIDATA_SLOTS_H

#include "plan.h"

typedef struct {
    char *fields;       /* plan.slot_bytes, field i at its offset */
    double *parameters; /* plan.n_parameters */
    double time;
    int64_t simulation, step;
    int pins;    /* copies out of it under way */
    int unowned; /* to be given back when the last pin goes */
} mpidata_slot;

typedef struct {
    const mpidata_plan *plan;
    mpidata_slot **slots;
    int64_t *free;
    int64_t n_slots, n_free, allocated;
} mpidata_slots;

void mpidata_slots_open(mpidata_slots *slots, const mpidata_plan *plan);
void mpidata_slots_close(mpidata_slots *slots);

/* Number of a free slot, or -1 where memory is short. */
int64_t mpidata_slots_take(mpidata_slots *slots);

/* Give a slot back now, or with its last pin. */
void mpidata_slots_give_back(mpidata_slots *slots, int64_t number);
void mpidata_slots_unpin(mpidata_slots *slots, int64_t number);

/* Append to a list of slot numbers, which grows. */
int mpidata_slots_append(int64_t **list, int64_t *n, int64_t *allocated, int64_t number);

#endif
