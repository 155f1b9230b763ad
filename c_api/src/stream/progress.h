/* The progress of a trainer: what it is sure to draw, and its reports to the scheduler. */
#ifndef MPIDATA_PROGRESS_H
#define MPIDATA_PROGRESS_H

#include "stream/state.h"

/* Batches that this trainer is sure to draw, counted from the start. *final: no more will come. */
int64_t mpidata_trainer_guaranteed_locked(const mpidata_trainer *trainer, int *final);

/* Refuse a sample that is larger than a capacity in bytes. */
int mpidata_trainer_check_size_locked(const mpidata_trainer *trainer, int64_t number);

/* A training sample is whole: it waits for room in the buffer, and its draws are counted. */
int mpidata_trainer_arrive_locked(mpidata_trainer *trainer, int64_t number);
void mpidata_trainer_count_draws_locked(mpidata_trainer *trainer, int64_t number);
void mpidata_trainer_count_draw_locked(mpidata_trainer *trainer, int64_t number);

/* It is dropped before it was drawn. */
void mpidata_trainer_count_no_draws_locked(mpidata_trainer *trainer, int64_t number);

/* The same for a sample that may also be one for validation, which is kept. */
int mpidata_trainer_whole_locked(mpidata_trainer *trainer, int64_t number, int validation);

/* Report that this trainer holds its share of a simulation, if it does and has not reported it. */
int mpidata_held_locked(mpidata_trainer *trainer, int64_t simulation);

/* Whether all samples with this step have already come. */
int mpidata_trainer_has_step_locked(const mpidata_trainer *trainer, int64_t simulation, int64_t step);

/* Whether this step now belongs to another trainer, in a job in which this may change. */
int mpidata_is_anothers_locked(const mpidata_trainer *trainer, int64_t simulation, int64_t step);

/* Hand waiting samples over to the buffer, as far as it has room; *n: their number. */
int mpidata_trainer_fill_buffer_locked(mpidata_trainer *trainer, int64_t *n);

/* The samples_window slots of a sample, valid until the lock is released. */
const int64_t *mpidata_trainer_steps_of_locked(const mpidata_trainer *trainer, const int64_t *number);

/* A sample is no longer needed. */
void mpidata_trainer_give_back_locked(mpidata_trainer *trainer, int64_t number);

/* Queue how often samples were drawn, and how many came from trainers that draw nothing, for the summary. */
int mpidata_trainer_post_draws_locked(mpidata_trainer *trainer);

/* The current statistics. */
mpidata_statistics mpidata_trainer_statistics_now_locked(const mpidata_trainer *trainer);

/* Queue the status of this trainer for the scheduler. */
int mpidata_trainer_post_status_locked(mpidata_trainer *trainer);

#endif
