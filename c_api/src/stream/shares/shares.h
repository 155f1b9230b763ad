/* Number of samples in a batch of this trainer: always `batch`, or its share of those that all trainers draw together.
 *
 * Of T trainers the n-th, counted from 0, has floor((b G + T - 1 - n) / T) samples in the first b batches of G. A batch is thus
 * shared by largest remainder: in the first one the first trainers have one sample more, then the next ones, in turn. In the
 * long run all draw the same number, as samples are dealt in equal shares, and at most a batch is left over at the end.
 *
 * If a trainer dies, the others share anew from one batch on: that of the furthest of them when they have met. None draws
 * until they have agreed on it. Batches that were granted beyond it are granted anew, because the sizes have changed. */
#ifndef MPIDATA_SHARES_H
#define MPIDATA_SHARES_H

#include "stream/state.h"

/* Samples of this trainer's batch with this number; *trainers, if not NULL: the number of trainers that share it. */
int64_t mpidata_batch_size_locked(const mpidata_trainer *trainer, int64_t number, int *trainers);

/* Number of next batches that `samples` fill, at most `most`; number of batches that `samples` need. */
int64_t mpidata_batches_filled_locked(const mpidata_trainer *trainer, int64_t samples, int64_t most);
int64_t mpidata_batches_needed_locked(const mpidata_trainer *trainer, int64_t samples);

/* The largest possible batch, for which a buffer must have room. */
int64_t mpidata_batch_at_most(const mpidata_plan *plan, int64_t batch, int64_t total);

/* The largest share of `total` samples of one of `trainers` trainers. */
int64_t mpidata_share_at_most(int64_t total, int64_t trainers);

/* From this batch on the current trainers share. Nobody has drawn any later batch. */
int mpidata_share_from_locked(mpidata_trainer *trainer, int64_t from);

void mpidata_shares_close(mpidata_trainer *trainer);

#endif
