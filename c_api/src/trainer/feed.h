/* A trainer without a job and without MPI, to try a training script: the caller passes the samples that solvers would send.
 * Otherwise it is like any trainer. */
#ifndef MPIDATA_FEED_H
#define MPIDATA_FEED_H

#include "mpidata.h"

/* Open the process's trainer, the only one of the plan. Does not block. */
int mpidata_trainer_open_alone(const char *plan_text);

/* Give a sample: fields[i] is the address of field i (C order, declared dtype), numbers that of n_numbers int64
 * (plan_text.h), parameters that of n_parameters float64. Samples of one try have the same constants.
 * All is copied. A repeated sample is dropped. Sleeps until the buffer has room: MPIDATA_ERR_AGAIN after timeout_s,
 * MPIDATA_END if nobody will draw any more. Any thread, one at a time. */
int mpidata_trainer_give(const void *const *fields, const int64_t *numbers, const double *parameters, double time, int64_t step, int64_t simulation,
                         int64_t by_try, double timeout_s);

/* Set the number of steps of a simulation for training, all of which will be passed. Any thread; does not block. */
int mpidata_trainer_gave_all(int64_t simulation, int64_t steps);

/* All samples of validation simulations were passed. Any thread; does not block. */
int mpidata_trainer_gave_validation(void);

/* Nothing more comes. Any thread; does not block. */
int mpidata_trainer_end_alone(void);

#endif
