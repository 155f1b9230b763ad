/* How far a trainer is: what it can be sure to draw, and what the scheduler is told of it. */
#ifndef MPIDATA_PROGRESS_H
#define MPIDATA_PROGRESS_H

#include "stream/state.h"

/* Batches that this trainer can be sure to draw, counted from the start. *final: it is all there is. */
int64_t mpidata_trainer_guaranteed_locked(const mpidata_trainer *trainer, int *final);

/* The statistics with their present figures. */
mpidata_statistics mpidata_trainer_statistics_now_locked(const mpidata_trainer *trainer);

/* Queue what the scheduler is to know of this trainer. */
int mpidata_trainer_post_status_locked(mpidata_trainer *trainer);

#endif
