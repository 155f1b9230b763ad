/* Statistics of the fields (samples.statistics): each step in the ledger counts once, validation samples do not count.
 *
 * Trainers exchange moments with their agreement: the moments that all had when a batch was granted are known when this batch
 * is drawn. All trainers thus know the same statistics, to the last bit, after equally many batches. A single trainer knows
 * those of the samples received so far. */
#ifndef MPIDATA_MOMENTS_EXCHANGE_H
#define MPIDATA_MOMENTS_EXCHANGE_H

#include "wire/moments.h"
#include "wire/plan.h"

typedef struct mpidata_granted_scales {
    int64_t from; /* the batch with which they are known */
    struct mpidata_granted_scales *next;
    mpidata_moments moments[];
} mpidata_granted_scales;

/* Arrays of plan.n_moments, NULL where that is 0. */
typedef struct {
    mpidata_moments *own;   /* received by this trainer */
    mpidata_moments *known; /* of all trainers, as of the last drawn batch */
    mpidata_granted_scales *first, *last; /* of batches that have not been drawn yet */
} mpidata_scales;

int mpidata_scales_open(mpidata_scales *scales, const mpidata_plan *plan);
void mpidata_scales_close(mpidata_scales *scales);

/* Keep the moments of n trainers, one after the other, until batch `from` is drawn, counted from 0. */
int mpidata_scales_grant(mpidata_scales *scales, const mpidata_plan *plan, const mpidata_moments *of_each, int n, int64_t from);

/* The draws continue because a trainer has died: moments that would be known at the end are known with batch `from`. */
void mpidata_scales_go_on(mpidata_scales *scales, int64_t from);

/* `drawn` batches have been drawn; INT64_MAX: the draws are over. */
void mpidata_scales_drawn(mpidata_scales *scales, const mpidata_plan *plan, int64_t drawn);

#endif
