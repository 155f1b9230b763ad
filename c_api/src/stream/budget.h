/* How often samples are drawn from a reservoir with buffer.repeats: so many draws, in the mean, for each sample that the
 * trainers have received in all. Training that is ahead of this waits, unless a trainer can take nothing more; solvers wait
 * for training that is more than repeats x capacity x trainers draws behind. At the end draws go on until there are
 * floor(repeats x received / (trainers x batch)) batches.
 *
 * Where a trainer dies, the samples that it has trained on stay received, by those that have its steps now, and its draws of
 * them stay draws, as far as the others know of them: those of steps that count. So the mean is over all samples. */
#ifndef MPIDATA_BUDGET_H
#define MPIDATA_BUDGET_H

#include "stream/state.h"

/* Samples that this trainer has received, those included which are its as others have died. */
int64_t mpidata_budget_received_locked(const mpidata_trainer *trainer);

/* Find these, before the first sample comes, and where this trainer has taken over steps of others. */
int mpidata_budget_inherit_locked(mpidata_trainer *trainer);

/* Batches that all trainers in all have drawn, where all that was drawn was trained on; and count anew from there on, as a trainer
 * joins that has had none of them. */
int64_t mpidata_budget_trained_locked(const mpidata_trainer *trainer);
void mpidata_budget_begin_anew_locked(mpidata_trainer *trainer);

/* Batches of one trainer that the budget allows where the trainers have received so many samples. */
int64_t mpidata_budget_limit_locked(const mpidata_trainer *trainer, int64_t received);

/* With one trainer: may the next batch be drawn? `ended`: no more samples come. */
int mpidata_budget_allows_locked(const mpidata_trainer *trainer, int ended);

/* Batches that all trainers in all have drawn, going by this one, however many they were in earlier starts of the run. */
int64_t mpidata_budget_batches_of_all_locked(const mpidata_trainer *trainer);

/* Is training so far behind that no more samples are to be taken? Not where there is no budget. */
int mpidata_budget_behind_locked(const mpidata_trainer *trainer);

/* Does this trainer wait for draws: it has room for no more, and has drawn all that is granted? */
int mpidata_budget_stuck_locked(const mpidata_trainer *trainer);

/* No more batches come: count, and tell the scheduler, how many are too many. */
int mpidata_budget_end_locked(mpidata_trainer *trainer, int64_t received);

#endif
