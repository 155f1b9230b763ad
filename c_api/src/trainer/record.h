/* The record; called by Python from one thread (mpidata/record/writer.py). Not installed. The functions return the codes
 * of mpidata.h, except mpidata_trainer_record_write. */
#ifndef MPIDATA_RECORD_H
#define MPIDATA_RECORD_H

#include <stdint.h>

#include "python/structures.h"

typedef struct mpidata_try_constants mpidata_try_constants;

/* Record every `every`-th step of each simulation. At most `samples` training samples, or `bytes` of two or more, wait to be
 * written (some more while messages are in flight); at this limit, skip: leave out samples, else: let the solvers wait. Before
 * mpidata_trainer_open. Does not block. */
int mpidata_trainer_record_start(int64_t every, int64_t samples, int64_t bytes, int skip);

/* Take the oldest samples, at most `samples`, or `bytes` of two or more: *count of them, with count x n_parameters
 * parameters and count of the others. Waits asleep until there are as many samples or bytes (or half of either limit), or
 * timeout_s has passed; MPIDATA_ERR_AGAIN: there is none. */
int mpidata_trainer_record_take(int64_t samples, int64_t bytes, double *parameters, double *time, int64_t *step,
                                int64_t *simulation, int64_t *count, double timeout_s);

/* The numbers of those taken: count x n_numbers int64. Does not block. */
int mpidata_trainer_record_numbers(int64_t *numbers);

/* The constants of those taken: count pointers, valid until mpidata_trainer_record_release. Does not block. */
int mpidata_trainer_record_constants(const mpidata_try_constants **constants);

/* Write a field of the samples [first, first + count) of those taken, contiguously, to a file at `offset`. Blocks as write
 * does. Returns 0, or errno. */
int mpidata_trainer_record_write(int file, int field, int64_t first, int64_t count, int64_t offset);

/* Give back the samples taken: they are written. Does not block. */
int mpidata_trainer_record_release(void);

/* Stop recording and give back all queued samples. why: a sentence for the scheduler, NULL if all was written. Does not
 * block. */
int mpidata_trainer_record_stop(const char *why);

int mpidata_trainer_record_figures(mpidata_record_figures *figures);

#endif
