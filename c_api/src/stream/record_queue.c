#include "stream/record_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "containers/array.h"

static struct {
    int64_t every, limit;
    int skip;
} wanted;

void mpidata_record_set(int64_t every, int64_t limit, int skip) {
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

int mpidata_record_limited(const mpidata_slots *slots, const mpidata_slot *slot) {
    return *slot->simulation < slots->plan->simulations;
}

int mpidata_record_add_locked(mpidata_record *record, mpidata_slots *slots, int64_t number) {
    MPIDATA_LOCKED(record->lock);
    mpidata_slot *slot = slots->slots[number];
    if (!record->every || *slot->step % record->every) return MPIDATA_SUCCESS;
    int counts = mpidata_record_limited(slots, slot);
    if (counts && record->skip && record->n_limited >= record->limit) {
        record->skipped++;
        return MPIDATA_SUCCESS;
    }
    if (!mpidata_array_reserve(&record->queue, &record->allocated, record->n_queued + 1, 64, sizeof *record->queue))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the record.");
    record->queue[record->n_queued++] = number;
    record->n_limited += counts;
    record->queued++;
    slot->pins++;
    if (record->enough && record->n_queued >= record->enough) {
        record->enough = 0;
        (void)pthread_cond_signal(&record->ready);
    }
    return MPIDATA_SUCCESS;
}

int mpidata_record_lets_in_locked(mpidata_record *record, int room) {
    MPIDATA_LOCKED(record->lock);
    int full = record->every && !record->skip && record->n_limited >= record->limit;
    if (room && full) {
        if (!(record->closed_since > 0)) record->closed_since = mpidata_now();
    } else if (record->closed_since > 0) {
        record->slowed_s += mpidata_now() - record->closed_since;
        record->closed_since = 0;
    }
    return room && !full;
}
