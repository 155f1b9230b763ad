/* How many samples a batch of this trainer has: `batch` each time, or its share of those that all trainers draw together.
 *
 * Of T trainers the n-th, counted from 0, has floor((b G + T - 1 - n) / T) samples in the first b batches of G. So a batch is
 * shared by largest remainder: in the first one the first trainers have one sample more, then the next ones, in turn. All draw
 * as many in the long run, as samples are dealt to them in equal shares, and none are left over at the end but for a batch.
 *
 * Where a trainer dies, the others share anew from one batch on: the one where the furthest of them is when they have come
 * together. Until they have agreed on it none draws. What was granted beyond it is granted anew, for the sizes have changed. */
#ifndef MPIDATA_SHARES_H
#define MPIDATA_SHARES_H

#include "stream/state.h"

/* Samples of this trainer's batch with this number; *trainers, if not NULL: of how many trainers it is a share. */
int64_t mpidata_batch_size_locked(const mpidata_trainer *trainer, int64_t number, int *trainers);

/* How many of the next batches so many samples fill, not more than `most`; and how many batches they need. */
int64_t mpidata_batches_filled_locked(const mpidata_trainer *trainer, int64_t samples, int64_t most);
int64_t mpidata_batches_needed_locked(const mpidata_trainer *trainer, int64_t samples);

/* The greatest batch that there can be, for which a buffer must have room. */
int64_t mpidata_batch_at_most(const mpidata_plan *plan, int64_t batch, int64_t total);

/* The greatest share of so many samples that one of so many trainers has. */
int64_t mpidata_share_at_most(int64_t total, int64_t trainers);

/* From this batch on those that there are now share. Of those behind it nobody has drawn any. */
int mpidata_share_from_locked(mpidata_trainer *trainer, int64_t from);

void mpidata_shares_close(mpidata_trainer *trainer);

#endif
