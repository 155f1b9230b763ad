/* How often samples are drawn from a reservoir with buffer.repeats: this many draws, in the mean, for each sample that the
 * trainers have received in total. Training that is ahead of this waits, unless a trainer can take nothing more; solvers wait
 * for training that is more than repeats x capacity x trainers draws behind. At the end draws continue until there are
 * floor(repeats x received / (trainers x batch)) batches.
 *
 * If a trainer dies, the samples that it has trained on still count as received, by the trainers that now have its steps, and
 * its draws of them still count, as far as the others know of them. The mean is thus over all samples. */
#ifndef MPIDATA_BUDGET_H
#define MPIDATA_BUDGET_H

#include "stream/state.h"

/* Samples that this trainer has received, including those that it has inherited from dead trainers. */
int64_t mpidata_budget_received_locked(const mpidata_trainer *trainer);

/* Count these, before the first sample comes, and when this trainer has taken over steps of others. */
int mpidata_budget_inherit_locked(mpidata_trainer *trainer);

/* Total batches that all trainers have drawn, if all drawn samples were trained on. Also restarts the count there, because a
 * trainer joins that has had none of them. */
int64_t mpidata_budget_trained_locked(const mpidata_trainer *trainer);
void mpidata_budget_begin_anew_locked(mpidata_trainer *trainer);

/* Batches of one trainer that the budget allows for this number of samples received by the trainers. */
int64_t mpidata_budget_limit_locked(const mpidata_trainer *trainer, int64_t received);

/* With one trainer: whether the next batch may be drawn. `ended`: no more samples come. */
int mpidata_budget_allows_locked(const mpidata_trainer *trainer, int ended);

/* Total batches that all trainers have drawn, derived from this one, including earlier starts of the run with other numbers. */
int64_t mpidata_budget_batches_of_all_locked(const mpidata_trainer *trainer);

/* Whether training is so far behind that no more samples may be taken. Always 0 without a budget. */
int mpidata_budget_behind_locked(const mpidata_trainer *trainer);

/* Whether this trainer waits for grants: it has no more room, and has drawn all granted batches. */
int mpidata_budget_stuck_locked(const mpidata_trainer *trainer);

/* No more batches come: count the excess ones, and report them to the scheduler. */
int mpidata_budget_end_locked(mpidata_trainer *trainer, int64_t received);

#endif
