/* Trainer side of the library: what Python calls (mpidata/native/library.py). Not installed.
 *
 * One trainer per process. After mpidata_trainer_begin any thread may call, one at a time for draw. A receive thread owned
 * by the library makes every further MPI call, hence MPI_THREAD_MULTIPLE.
 * Functions return the codes of mpidata.h; the sentence is in mpidata_last_error(). */
#ifndef MPIDATA_TRAINER_H
#define MPIDATA_TRAINER_H

#include "mpidata.h"

/* Join the job as a trainer. Collective over world (with mpidata_init on solvers and mpidata_scheduler_open on rank 0);
 * blocks without spinning. world and *trainers are Fortran handles; *trainers is the communicator of the trainers, for
 * the caller's own use (the library's own traffic runs on others). */
int mpidata_trainer_open(MPI_Fint world, MPI_Fint *trainers);

/* Start the receive thread. Between open and this a checkpoint may be restored (snapshot.h). Does not block. */
int mpidata_trainer_begin(void);

/* Set how draws are grouped: count samples a draw (1: single-sample mode). Once, before the first draw; the same on all
 * trainers (MPIDATA_ERR_ARGUMENT otherwise, and when the buffer is too small for it). Does not block. */
int mpidata_trainer_start(int64_t count);

/* Fill one batch of `count` samples (the count of mpidata_trainer_start).
 *
 * fields      one pointer per field in job order, each to count x (declared shape) elements of the declared dtype
 * parameters  count x n_parameters float64
 * time        count float64
 * step        count int64
 * simulation  count int64
 *
 * MPIDATA_SUCCESS; MPIDATA_END: the stream is over, the same batch number on all trainers; MPIDATA_CHECKPOINT: take a
 * snapshot (snapshot.h) and call again, the same batch number on all trainers; MPIDATA_ERR_AGAIN: nothing within timeout_s
 * seconds (call again: lets the caller handle signals); or an error that ended the job. Sleeps while it waits. */
int mpidata_trainer_draw(void *const *fields, double *parameters, double *time, int64_t *step, int64_t *simulation,
                         double timeout_s);

/* Wait until the next batch can be drawn, as mpidata_trainer_draw does, and draw nothing. The same answer on all trainers
 * that have drawn as many batches. */
int mpidata_trainer_ahead(double timeout_s);

/* *steps: those of each simulation that is trained on, where all of which it is known have the same number; -1 where they
 * have not, or none is known yet. Any thread; does not block. */
int mpidata_trainer_steps(int64_t *steps);

/* mpidata_trainer_draw without a copy, where the next batch has memory of its own (slots.h: mpidata_page_layout): *memory is where,
 * and is the caller's, to be changed at will, until mpidata_trainer_give_back of *page. Its samples may be in another order
 * than mpidata_trainer_draw would have them in. NULL with MPIDATA_SUCCESS: it has none, nothing was drawn, and
 * mpidata_trainer_draw gives the batch at once. bytes: size that the caller takes a batch to have. */
int mpidata_trainer_draw_page(int64_t bytes, void **memory, int64_t *page, double timeout_s);

/* Any thread; does not block. */
int mpidata_trainer_give_back(int64_t page);

/* Wait until this trainer holds its whole share of the validation samples; *count is their number. SUCCESS, AGAIN, END
 * (the job is stopping and it will never be whole) or an error. Sleeps while it waits. */
int mpidata_trainer_validation(int64_t *count, double timeout_s);

/* The index-th validation sample, ordered by (simulation, step): fields[i] gets the address of field i (C order,
 * declared dtype), *parameters that of n_parameters float64. The memory stays valid until mpidata_trainer_free. */
int mpidata_trainer_validation_sample(int64_t index, const void **fields, const double **parameters, double *time,
                                      int64_t *step, int64_t *simulation);

/* Report a named value (a loss, say) for the summary and the progress display. Any thread; does not block. */
int mpidata_trainer_report(const char *name, double value);

/* Leave the stream early: the job ends in order. failed: 0 the script left its loop, 1 it ended with an error, which
 * `reason` tells. The next draw gives MPIDATA_END. Does not block. */
int mpidata_trainer_stop(int failed, const char *reason);

typedef struct {
    int64_t received;    /* distinct training samples received */
    int64_t validation;  /* distinct validation samples received */
    int64_t duplicates;  /* samples dropped because they had been received before */
    int64_t drawn;       /* batches drawn */
    int64_t fill;        /* samples in the buffer */
    int64_t capacity;    /* of the buffer */
    int64_t bytes;       /* payload bytes received, validation included */
} mpidata_statistics;

int mpidata_trainer_statistics(mpidata_statistics *statistics);

/* Say goodbye to the scheduler and end the receive thread. Takes in and drops what solvers still send until the scheduler
 * says that all of them have left, for at most timeout_s. */
int mpidata_trainer_close(double timeout_s);

/* Give the memory back. After close; validation samples and batches without a copy must not be used any more. */
int mpidata_trainer_free(void);

#endif
