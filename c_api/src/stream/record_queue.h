/* The record's queue: whole samples on their way to a file, which the caller writes (mpidata/record/writer.py). They are
 * pinned where they are, so nothing is copied, and given back once they are written. Under the trainer's lock. */
#ifndef MPIDATA_RECORD_QUEUE_H
#define MPIDATA_RECORD_QUEUE_H

#include "base/lock.h"
#include "buffer/slots.h"

typedef struct {
    const mpidata_lock *lock; /* the trainer's */
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

/* What the next mpidata_record_open makes: as mpidata_trainer_record_start says. */
void mpidata_record_set(int64_t every, int64_t limit, int skip);

int mpidata_record_open(mpidata_record *record, const mpidata_lock *lock);
void mpidata_record_close(mpidata_record *record);

/* Queue a whole sample, or skip it. */
int mpidata_record_add_locked(mpidata_record *record, mpidata_slots *slots, int64_t number);

/* Does this sample count against the limit? */
int mpidata_record_limited(const mpidata_slots *slots, const mpidata_slot *slot);

/* May training samples be taken in, if the buffer has room? No while the queue is at its limit, unless they are to be
 * skipped. Counts the time in which only the record says no. */
int mpidata_record_lets_in_locked(mpidata_record *record, int room);

#endif
