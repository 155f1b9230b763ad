/* How far a trainer is: what it can be sure to draw, and what the scheduler is told of it. */
#ifndef MPIDATA_PROGRESS_H
#define MPIDATA_PROGRESS_H

#include "stream/state.h"

/* Batches that this trainer can be sure to draw, counted from the start. *final: it is all there is. */
int64_t mpidata_trainer_guaranteed_locked(const mpidata_trainer *trainer, int *final);

/* A training sample is whole: it waits for room in the buffer, and its draws are counted. */
int mpidata_trainer_arrive_locked(mpidata_trainer *trainer, int64_t slot);
void mpidata_trainer_count_draws_locked(mpidata_trainer *trainer, mpidata_slot *slot);
void mpidata_trainer_count_draw_locked(mpidata_trainer *trainer, mpidata_slot *slot);

/* Queue how often samples were drawn, for the summary. */
int mpidata_trainer_post_draws_locked(mpidata_trainer *trainer);

/* The statistics with their present figures. */
mpidata_statistics mpidata_trainer_statistics_now_locked(const mpidata_trainer *trainer);

/* Queue what the scheduler is to know of this trainer. */
int mpidata_trainer_post_status_locked(mpidata_trainer *trainer);

#endif
