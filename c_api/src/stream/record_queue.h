/* The record's queue: whole samples on their way to a file, which the caller writes (mpidata/record/writer.py). They are
 * pinned where they are, so nothing is copied, and given back once they are written. Under the trainer's lock. */
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
    int64_t every; /* 0 where nothing is recorded */
    mpidata_amount limit;
    int skip;
    pthread_cond_t ready; /* to the writer: enough is queued */
    int64_t *queue;       /* slots, oldest first; the first n_taken are being written */
    mpidata_slot **taken;
    int64_t n_taken, allocated;
    mpidata_amount waiting; /* in the queue */
    mpidata_amount limited; /* those in it that count: validation samples stay in memory anyway */
    mpidata_amount enough;  /* what the writer waits for, in either; 0 samples: it does not wait */
    int64_t queued, written, skipped; /* in all */
    double slowed_s, closed_since;    /* closed_since 0: the intake is not closed for the record's sake */
} mpidata_record;

/* What the next mpidata_record_open makes: as mpidata_trainer_record_start says. */
void mpidata_record_set(int64_t every, mpidata_amount limit, int skip);

int mpidata_record_open(mpidata_record *record, const mpidata_lock *lock);
void mpidata_record_close(mpidata_record *record);

/* Queue a whole sample, or skip it. */
int mpidata_record_add_locked(mpidata_record *record, mpidata_slots *slots, int64_t number);

/* Remove the oldest n samples, which are written or are not to be. */
void mpidata_record_drop_locked(mpidata_record *record, mpidata_slots *slots, int64_t n);

/* Is there as much as that, in samples or in bytes? */
int mpidata_amount_reaches(const mpidata_amount *amount, const mpidata_amount *other);

/* May training samples be taken in, if the buffer has room? No while the queue is at its limit, unless they are to be
 * skipped. Counts the time in which only the record says no. */
int mpidata_record_lets_in_locked(mpidata_record *record, int room);

#endif
