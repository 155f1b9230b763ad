/* The record's queue: whole samples on their way to a file, which the caller writes (mpidata/record/writer.py). They are
 * pinned where they are, so nothing is copied, and given back once they are written.
 *
 * The functions with a mpidata_record take part in receiving, under the trainer's lock. The others are called from
 * Python, by one thread; they return the codes of mpidata.h, but for mpidata_trainer_record_write. */
#ifndef MPIDATA_RECORD_H
#define MPIDATA_RECORD_H

#include <pthread.h>

#include "buffer/slots.h"

typedef struct {
    int64_t every, limit; /* every: 0 where nothing is recorded */
    int skip;
    pthread_cond_t ready; /* to the writer: enough is queued */
    int64_t *queue;       /* slots, oldest first; the first n_taken are being written */
    mpidata_slot **taken;
    int64_t n_queued, n_taken, allocated;
    int64_t n_limited; /* those queued that count: validation samples stay in memory anyway */
    int64_t enough;    /* the writer waits for so many, 0: it does not wait */
    int64_t queued, written, skipped; /* in all */
    double slowed_s, closed_since;    /* closed_since 0: the intake is not closed for the record's sake */
} mpidata_record;

/* As mpidata_trainer_record_start has set it. */
int mpidata_record_open(mpidata_record *record);
void mpidata_record_close(mpidata_record *record);

/* Queue a whole sample, or skip it. */
int mpidata_record_add(mpidata_record *record, mpidata_slots *slots, int64_t number);

/* May training samples be taken in, if the buffer has room? No while the queue is at its limit, unless they are to be
 * skipped. Counts the time in which only the record says no. */
int mpidata_record_lets_in(mpidata_record *record, int room);

typedef struct {
    int64_t queued, written, skipped; /* samples so far; written: released, or given up by stop */
    double slowed_s;                  /* how long the intake was closed for the record's sake */
} mpidata_record_figures;

/* Record every `every`-th step of each simulation, with at most `limit` training samples waiting to be written (some more
 * while messages are on their way); when it is reached, skip: leave out samples, else: let the solvers wait. Before
 * mpidata_trainer_open. Does not block. */
int mpidata_trainer_record_start(int64_t every, int64_t limit, int skip);

/* Take the oldest samples, at most `most`: *count of them, with count x n_parameters parameters and count of the others.
 * Waits asleep until there are `most` (or half the limit), or timeout_s has passed; MPIDATA_ERR_AGAIN: there is none. */
int mpidata_trainer_record_take(int64_t most, double *parameters, double *time, int64_t *step, int64_t *simulation,
                                int64_t *count, double timeout_s);

/* Write a field of the samples [first, first + count) of those taken, one behind the other, to a file at `offset`. Blocks
 * as write does. Returns 0, or errno. */
int mpidata_trainer_record_write(int file, int field, int64_t first, int64_t count, int64_t offset);

/* Give back the samples taken: they are written. Does not block. */
int mpidata_trainer_record_release(void);

/* Record no more and give back all that is queued. why: a sentence for the scheduler, NULL where all was written. Does not
 * block. */
int mpidata_trainer_record_stop(const char *why);

int mpidata_trainer_record_figures(mpidata_record_figures *figures);

#endif
