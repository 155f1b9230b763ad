/* How far a trainer is: what it can be sure to draw, and what the scheduler is told of it. */
#ifndef MPIDATA_PROGRESS_H
#define MPIDATA_PROGRESS_H

#include "stream/state.h"

/* Batches that this trainer can be sure to draw, counted from the start. *final: it is all there is. */
int64_t mpidata_trainer_guaranteed_locked(const mpidata_trainer *trainer, int *final);

/* Refuse a sample that is larger than a capacity in bytes. */
int mpidata_trainer_check_size_locked(const mpidata_trainer *trainer, int64_t number);

/* A training sample is whole: it waits for room in the buffer, and its draws are counted. */
int mpidata_trainer_arrive_locked(mpidata_trainer *trainer, int64_t number);
void mpidata_trainer_count_draws_locked(mpidata_trainer *trainer, int64_t number);
void mpidata_trainer_count_draw_locked(mpidata_trainer *trainer, int64_t number);

/* It is dropped before it was drawn. */
void mpidata_trainer_count_no_draws_locked(mpidata_trainer *trainer, int64_t number);

/* The same, where it may also be one for validation, which stays. */
int mpidata_trainer_whole_locked(mpidata_trainer *trainer, int64_t number, int validation);

/* Post that this trainer holds its share of a simulation, if that is so and was not told. */
int mpidata_held_locked(mpidata_trainer *trainer, int64_t simulation);

/* Is each sample with this step there already? */
int mpidata_trainer_has_step_locked(const mpidata_trainer *trainer, int64_t simulation, int64_t step);

/* Is this step of another trainer now, in a job in which these change? */
int mpidata_is_anothers_locked(const mpidata_trainer *trainer, int64_t simulation, int64_t step);

/* Hand over to the buffer what it has room for of that which waits; *n: how many samples. */
int mpidata_trainer_fill_buffer_locked(mpidata_trainer *trainer, int64_t *n);

/* The slots of a sample, of which there are samples_window, until the lock is given up. */
const int64_t *mpidata_trainer_steps_of_locked(const mpidata_trainer *trainer, const int64_t *number);

/* A sample is needed no more. */
void mpidata_trainer_give_back_locked(mpidata_trainer *trainer, int64_t number);

/* Queue how often samples were drawn, and how many came from trainers that draw nothing, for the summary. */
int mpidata_trainer_post_draws_locked(mpidata_trainer *trainer);

/* The statistics with their present figures. */
mpidata_statistics mpidata_trainer_statistics_now_locked(const mpidata_trainer *trainer);

/* Queue what the scheduler is to know of this trainer. */
int mpidata_trainer_post_status_locked(mpidata_trainer *trainer);

#endif
