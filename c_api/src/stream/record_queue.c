#include "stream/record_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "containers/array.h"

static struct {
    int64_t every;
    mpidata_amount limit;
    int skip;
} wanted;

void mpidata_record_set(int64_t every, mpidata_amount limit, int skip) {
    wanted.every = every;
    wanted.limit = limit;
    wanted.skip = skip;
}

int mpidata_record_open(mpidata_record *record, const mpidata_lock *lock) {
    memset(record, 0, sizeof *record);
    if (mpidata_condition_open(&record->ready))
        return mpidata_error(MPIDATA_ERR_MEMORY, "The record's lock cannot be made.");
    record->lock = lock;
    record->every = wanted.every;
    record->limit = wanted.limit;
    record->skip = wanted.skip;
    return MPIDATA_SUCCESS;
}

void mpidata_record_close(mpidata_record *record) {
    free(record->queue);
    free(record->taken);
    (void)pthread_cond_destroy(&record->ready);
}

int mpidata_amount_reaches(const mpidata_amount *amount, const mpidata_amount *other) {
    return amount->samples >= other->samples || amount->bytes >= other->bytes;
}

/* A single sample is always accepted, whatever its size. */
static int is_full(const mpidata_record *record) {
    const mpidata_amount *limited = &record->limited, *limit = &record->limit;
    return limited->samples >= limit->samples || (limited->samples > 1 && limited->bytes >= limit->bytes);
}

static int is_limited(const mpidata_slots *slots, const mpidata_slot *slot) {
    return *slot->simulation < slots->plan->simulations;
}

/* n: 1 more, or -1. */
static void count(mpidata_record *record, const mpidata_slots *slots, const mpidata_slot *slot, int n) {
    const int64_t bytes = n * (int64_t)mpidata_slot_bytes(slots, slot);
    record->waiting.samples += n;
    record->waiting.bytes += bytes;
    if (!is_limited(slots, slot)) return;
    record->limited.samples += n;
    record->limited.bytes += bytes;
}

int mpidata_record_add_locked(mpidata_record *record, mpidata_slots *slots, int64_t number) {
    MPIDATA_LOCKED(record->lock);
    mpidata_slot *slot = slots->slots[number];
    if (!record->every || *slot->step % record->every) return MPIDATA_SUCCESS;
    if (record->skip && is_limited(slots, slot) && is_full(record)) {
        record->skipped++;
        return MPIDATA_SUCCESS;
    }
    if (!mpidata_array_reserve(&record->queue, &record->allocated, record->waiting.samples + 1, 64, sizeof *record->queue))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the record.");
    record->queue[record->waiting.samples] = number;
    count(record, slots, slot, 1);
    record->queued++;
    slot->pins++;
    if (record->enough.samples && mpidata_amount_reaches(&record->waiting, &record->enough)) {
        record->enough.samples = 0;
        (void)pthread_cond_signal(&record->ready);
    }
    return MPIDATA_SUCCESS;
}

void mpidata_record_drop_locked(mpidata_record *record, mpidata_slots *slots, int64_t n) {
    MPIDATA_LOCKED(record->lock);
    for (int64_t i = 0; i < n; i++) {
        count(record, slots, slots->slots[record->queue[i]], -1);
        mpidata_slots_unpin(slots, record->queue[i]);
    }
    record->written += n;
    if (n) memmove(record->queue, record->queue + n, (size_t)record->waiting.samples * sizeof *record->queue);
}

int mpidata_record_lets_in_locked(mpidata_record *record, int room) {
    MPIDATA_LOCKED(record->lock);
    int full = record->every && !record->skip && is_full(record);
    if (room && full) {
        if (!(record->closed_since > 0)) record->closed_since = mpidata_now();
    } else if (record->closed_since > 0) {
        record->slowed_s += mpidata_now() - record->closed_since;
        record->closed_since = 0;
    }
    return room && !full;
}
