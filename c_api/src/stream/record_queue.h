/* The record's queue: whole samples to be written to a file by the caller (mpidata/record/writer.py). They are pinned in their
 * slots, not copied, and given back once they are written. Under the trainer's lock. */
#ifndef MPIDATA_RECORD_QUEUE_H
#define MPIDATA_RECORD_QUEUE_H

#include "base/lock.h"
#include "buffer/slots.h"

/* Samples, and the bytes of their values. */
typedef struct {
    int64_t samples, bytes;
} mpidata_amount;

typedef struct {
    const mpidata_lock *lock; /* the trainer's */
    int64_t every; /* 0: nothing is recorded */
    mpidata_amount limit;
    int skip;
    pthread_cond_t ready; /* to the writer: enough is queued */
    int64_t *queue;       /* slots, oldest first; the first n_taken are being written */
    mpidata_slot **taken;
    int64_t n_taken, allocated;
    mpidata_amount waiting; /* in the queue */
    mpidata_amount limited; /* those in it that count: validation samples stay in memory anyway */
    mpidata_amount enough;  /* what the writer waits for, samples or bytes; 0 samples: it does not wait */
    int64_t queued, written, skipped; /* in total */
    double slowed_s, closed_since;    /* closed_since 0: the intake is not closed because of the record */
} mpidata_record;

/* Set the arguments of the next mpidata_record_open, see mpidata_trainer_record_start. */
void mpidata_record_set(int64_t every, mpidata_amount limit, int skip);

int mpidata_record_open(mpidata_record *record, const mpidata_lock *lock);
void mpidata_record_close(mpidata_record *record);

/* Queue a whole sample, or skip it. */
int mpidata_record_add_locked(mpidata_record *record, mpidata_slots *slots, int64_t number);

/* Remove the oldest n samples, which are written or will not be. */
void mpidata_record_drop_locked(mpidata_record *record, mpidata_slots *slots, int64_t n);

/* Whether one reaches the other, in samples or in bytes. */
int mpidata_amount_reaches(const mpidata_amount *amount, const mpidata_amount *other);

/* Whether training samples may be taken in, if the buffer has room. Not while the queue is at its limit, unless they are
 * skipped. Counts the time in which only the record prevents it. */
int mpidata_record_lets_in_locked(mpidata_record *record, int room);

#endif
