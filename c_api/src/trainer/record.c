#include "trainer/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "buffer/write.h"
#include "containers/array.h"
#include "stream/state.h"

int mpidata_trainer_record_start(int64_t every, int64_t limit, int skip) {
    if (every < 1 || limit < 1)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "A record of every %lld. step, at most %lld waiting. Use 1 or more.",
                             (long long)every, (long long)limit);
    mpidata_record_set(every, limit, skip);
    return MPIDATA_SUCCESS;
}

/* Forget the oldest n. */
static void drop_locked(mpidata_trainer *trainer, int64_t n) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_record *record = &trainer->record;
    for (int64_t i = 0; i < n; i++) {
        record->n_limited -= mpidata_record_limited(&trainer->slots, trainer->slots.slots[record->queue[i]]);
        mpidata_slots_unpin(&trainer->slots, record->queue[i]);
    }
    record->n_queued -= n;
    record->written += n;
    record->n_taken = 0;
    if (n) memmove(record->queue, record->queue + n, (size_t)record->n_queued * sizeof *record->queue);
    mpidata_trainer_wake_locked(trainer);
}

/* Sleep until there are enough, or the time has passed. */
static void wait_for_locked(mpidata_trainer *trainer, int64_t most, double timeout_s) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_record *record = &trainer->record;
    int64_t half = record->limit > 1 ? record->limit / 2 : 1, enough = most < half ? most : half;
    double deadline = mpidata_now() + timeout_s;
    record->enough = enough;
    while (record->n_queued < enough && record->every)
        if (!mpidata_lock_sleep_locked(&trainer->lock, &record->ready, deadline)) break;
    record->enough = 0;
}

/* The slots' addresses are kept: the list of slots may move while they are written. */
static int take_locked(mpidata_trainer *trainer, int64_t n, double *parameters, double *time, int64_t *step,
                int64_t *simulation) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_record *record = &trainer->record;
    size_t n_parameters = (size_t)trainer->job.plan.n_parameters;
    if (!mpidata_array_resize(&record->taken, n, sizeof *record->taken))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the record.");
    record->n_taken = n;
    for (int64_t i = 0; i < n; i++) {
        const mpidata_slot *slot = record->taken[i] = trainer->slots.slots[record->queue[i]];
        if (n_parameters) memcpy(parameters + (size_t)i * n_parameters, slot->parameters, n_parameters * sizeof *parameters);
        time[i] = *slot->time;
        step[i] = *slot->step;
        simulation[i] = *slot->simulation;
    }
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_record_take(int64_t most, double *parameters, double *time, int64_t *step, int64_t *simulation,
                                int64_t *count, double timeout_s) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    wait_for_locked(trainer, most, timeout_s);
    int status = MPIDATA_ERR_AGAIN;
    *count = most < trainer->record.n_queued ? most : trainer->record.n_queued;
    if (*count) status = take_locked(trainer, *count, parameters, time, step, simulation);
    mpidata_lock_give(&trainer->lock);
    return status;
}

int mpidata_trainer_record_write(int file, int field, int64_t first, int64_t count, int64_t offset) {
    mpidata_trainer *trainer;
    if (mpidata_the_trainer(&trainer) || field < 0 || field >= trainer->job.plan.n_fields || first < 0 || count < 0 ||
        count > trainer->record.n_taken - first)
        return EINVAL;
    return mpidata_write_field(&trainer->slots, file, field, trainer->record.taken + first, count, offset);
}

int mpidata_trainer_record_release(void) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    drop_locked(trainer, trainer->record.n_taken);
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_record_stop(const char *why) {
    mpidata_trainer *trainer;
    mpidata_event event = {.kind = MPIDATA_EVENT_RECORD_STOPPED};
    (void)snprintf(event.text, sizeof event.text, "%s", why ? why : "");
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    trainer->record.every = 0;
    drop_locked(trainer, trainer->record.n_queued);
    int status = why ? mpidata_trainer_post_locked(trainer, &event) : MPIDATA_SUCCESS;
    mpidata_lock_give(&trainer->lock);
    return status;
}

int mpidata_trainer_record_figures(mpidata_record_figures *figures) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    const mpidata_record *record = &trainer->record;
    figures->queued = record->queued;
    figures->written = record->written;
    figures->skipped = record->skipped;
    figures->slowed_s = record->slowed_s + (record->closed_since > 0 ? mpidata_now() - record->closed_since : 0);
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}
