/* Statistics of the fields (samples.statistics): of each step that is in the ledger once, of no validation sample.
 *
 * What trainers know of one another comes with their agreement: the moments that all had when a batch was granted are known
 * when this batch is drawn. So all trainers know the same, to the last bit, after as many batches. A trainer without others
 * knows what it has received by then. */
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
    mpidata_moments *known; /* of all trainers, as of the batch that was drawn last */
    mpidata_granted_scales *first, *last; /* of batches that were not drawn yet */
} mpidata_scales;

int mpidata_scales_open(mpidata_scales *scales, const mpidata_plan *plan);
void mpidata_scales_close(mpidata_scales *scales);

/* Keep the moments of n trainers, one after the other, until batch `from` is drawn, counted from 0. */
int mpidata_scales_grant(mpidata_scales *scales, const mpidata_plan *plan, const mpidata_moments *of_each, int n, int64_t from);

/* The draws go on after all, as a trainer has died: what would be known at the end is known with batch `from`. */
void mpidata_scales_go_on(mpidata_scales *scales, int64_t from);

/* So many batches have been drawn, or the draws are over: then `drawn` is INT64_MAX. */
void mpidata_scales_drawn(mpidata_scales *scales, const mpidata_plan *plan, int64_t drawn);

#endif
