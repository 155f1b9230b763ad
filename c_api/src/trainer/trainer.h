/* Trainer side of the library; called by Python (mpidata/native/library.py). Not installed.
 *
 * One trainer per process. After mpidata_trainer_begin any thread may call, one at a time for draw. A receive thread owned
 * by the library makes every further MPI call, hence MPI_THREAD_MULTIPLE.
 * Functions return the codes of mpidata.h; the sentence is in mpidata_last_error(). */
#ifndef MPIDATA_TRAINER_H
#define MPIDATA_TRAINER_H

#include "mpidata.h"
#include "trainer/constants/held.h"
#include "wire/messages.h"

/* Join the job as a trainer. Collective over world (with mpidata_init on solvers and mpidata_scheduler_open on rank 0);
 * blocks without spinning. world and *trainers are Fortran handles; *trainers is the communicator of the trainers, for
 * the caller's own use (the library's own traffic runs on others). */
int mpidata_trainer_open(MPI_Fint world, MPI_Fint *trainers);

/* Page-lock the memory of the buffer, from now on, for a device of this process. Right after open. Errors: MPIDATA_ERR_DEVICE. */
int mpidata_trainer_lock_pages(int ordinal);

/* Start the receive thread. Between open and this a checkpoint may be restored (snapshot.h). Does not block. */
int mpidata_trainer_begin(void);

/* *steps: number of steps of each simulation for training, if all known ones have the same; -1 if they differ, or none is
 * known yet. Any thread; does not block. */
int mpidata_trainer_steps(int64_t *steps);

/* *stopped: the draws were ended by a stop of the job, before the stream was over. Any thread; does not block. */
int mpidata_trainer_stopped(int *stopped);

/* Wait until this trainer holds its whole share of the validation samples; *count is their number. SUCCESS, AGAIN, END
 * (the job is stopping and it will never be whole), MEET as for a draw, or an error. If a trainer has died, the share is whole
 * once the samples that it held have come again. Sleeps while it waits. */
int mpidata_trainer_validation(int64_t *count, double timeout_s);

/* The index-th step of the validation samples, which are ordered by (simulation, first step): n_numbers int64, n_parameters
 * float64, and the others. Any thread; does not block. */
int mpidata_trainer_validation_sample(int64_t index, int64_t *numbers, double *parameters, double *time, int64_t *step,
                                      int64_t *simulation);

/* Its constants (held.h), or NULL. */
int mpidata_trainer_validation_constants(int64_t index, mpidata_try_constants **constants);

/* Copy its fields: fields[i] is the address for field i (C order, declared dtype, its own lengths); NULL, for a constant: it
 * is left out. Any thread. */
int mpidata_trainer_validation_copy(int64_t index, void *const *fields);

/* Report a named value, for example a loss, for the summary and the progress display. Any thread; does not block. */
int mpidata_trainer_report(const char *name, double value);

/* Report the losses of `count` different simulations to the scheduler. MPIDATA_ERR_AGAIN: nothing was taken, because earlier
 * losses have not been sent; never if this is the `last` time. Any thread; does not block. */
int mpidata_trainer_losses(const mpidata_losses *losses, int64_t count, int last);

/* A trainer has died: the others use this communicator for agreements from the next one on. All of them pass it; the library
 * then owns it. Does not block. */
int mpidata_trainer_regroup(MPI_Fint living);

/* From here to a call with 0 the receive thread makes no calls of MPI, or one round per second if this takes longer. Such pairs
 * may be nested. Returns once the thread is out of MPI. Any thread. */
int mpidata_trainer_hold(int on);

/* Ask the scheduler to cancel simulations. *n_taken of the n ids are copied to `taken`, which has room for all: each once,
 * except ids of simulations that are not for training, were cancelled before, or have ended, as far as this trainer knows.
 * Does not block. */
int mpidata_trainer_cancel(const int64_t *ids, int64_t n, int64_t *taken, int64_t *n_taken);

/* The newest order of the number of trainers: its number, 0 before the first, and the count; -1 if the job ends. Does not
 * block. */
int mpidata_trainer_wanted(int64_t *number, int64_t *count);

/* Number of the newest checkpoint that the trainers have agreed on; *before: of the newest one before this trainer joined,
 * -1 while it is not known. Does not block. */
int mpidata_trainer_agreed_checkpoint(int64_t *agreed, int64_t *before);

/* This trainer takes a place among those that train, before mpidata_trainer_regroup; and the batches that these have drawn. */
int mpidata_trainer_takes_place(void);
int mpidata_trainer_be_at(int64_t drawn);

/* In such a job, with a stream: the samples that the trainers have trained on, as *n numbers, valid until the next call. A
 * trainer that takes a place takes them over, before mpidata_trainer_regroup. */
int mpidata_trainer_pack_trained(const int64_t **numbers, int64_t *n);
int mpidata_trainer_take_trained(const int64_t *numbers, int64_t n);

/* This trainer no longer trains, or never has: for it the stream is over. */
int mpidata_trainer_rests(void);

/* In such a job, with a stream. All trainers have made a training step with these samples (count x simulation, step), which do
 * not come again; n x trainer, how many of them it drew. Before the next mpidata_trainer_regroup. Does not block. */
int mpidata_trainer_trained(int64_t count, const int64_t *samples, int64_t n, const int64_t *drawn);

/* A draw has returned MPIDATA_MEET: all living trainers must meet, and draw again. *over: this one has had all samples. If all
 * have, and nobody has died, call mpidata_trainer_met. Do not block. */
int mpidata_trainer_meet(int *over);
int mpidata_trainer_met(void);

/* Leave the stream early: the job ends in order. failed: 0 the script left its loop, 1 it ended with an error, given in
 * `reason`. The next draw returns MPIDATA_END. If others have had this trainer's samples, it is not early; then waits
 * briefly for their end, else not at all. */
int mpidata_trainer_stop(int failed, const char *reason);

int mpidata_trainer_statistics(mpidata_statistics *statistics);

/* Say goodbye to the scheduler and end the receive thread. Receives and drops messages of solvers until the scheduler reports
 * that all of them have left, for at most timeout_s. */
int mpidata_trainer_close(double timeout_s);

/* Free the memory. After close; validation samples and batches without a copy must no longer be used. */
int mpidata_trainer_free(void);

#endif
