#include "trainer/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "buffer/write.h"
#include "containers/array.h"
#include "stream/state.h"

int mpidata_trainer_record_start(int64_t every, int64_t samples, int64_t bytes, int skip) {
    if (every < 1 || samples < 1 || bytes < 1)
        return mpidata_error(MPIDATA_ERR_ARGUMENT,
                             "A record of every %lld. step, at most %lld samples or %lld bytes waiting. Use 1 or more.",
                             (long long)every, (long long)samples, (long long)bytes);
    mpidata_record_set(every, (mpidata_amount){samples, bytes}, skip);
    return MPIDATA_SUCCESS;
}

/* Forget the oldest n. */
static void drop_locked(mpidata_trainer *trainer, int64_t n) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_record_drop_locked(&trainer->record, &trainer->slots, n);
    trainer->record.n_taken = 0;
    mpidata_trainer_wake_locked(trainer);
}

static int64_t half_at_most(int64_t limit, int64_t most) {
    const int64_t half = limit > 1 ? limit / 2 : 1;
    return most < half ? most : half;
}

/* Sleep until enough are queued, or the time has passed. */
static void wait_for_locked(mpidata_trainer *trainer, mpidata_amount most, double timeout_s) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_record *record = &trainer->record;
    const mpidata_amount *limit = &record->limit;
    const mpidata_amount enough = {half_at_most(limit->samples, most.samples), half_at_most(limit->bytes, most.bytes)};
    double deadline = mpidata_now() + timeout_s;
    record->enough = enough;
    while (!mpidata_amount_reaches(&record->waiting, &enough) && record->every)
        if (!mpidata_lock_sleep_locked(&trainer->lock, &record->ready, deadline)) break;
    record->enough.samples = 0;
}

/* The number of oldest samples within the limit of bytes, at least one. */
static int64_t count_locked(const mpidata_trainer *trainer, mpidata_amount most) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_record *record = &trainer->record;
    int64_t n = 0, bytes = 0;
    for (; n < most.samples && n < record->waiting.samples; n++) {
        bytes += (int64_t)mpidata_slot_bytes(&trainer->slots, trainer->slots.slots[record->queue[n]]);
        if (n && bytes > most.bytes) break;
    }
    return n;
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

int mpidata_trainer_record_take(int64_t samples, int64_t bytes, double *parameters, double *time, int64_t *step,
                                int64_t *simulation, int64_t *count, double timeout_s) {
    const mpidata_amount most = {samples, bytes};
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    wait_for_locked(trainer, most, timeout_s);
    int status = MPIDATA_ERR_AGAIN;
    *count = count_locked(trainer, most);
    if (*count) status = take_locked(trainer, *count, parameters, time, step, simulation);
    mpidata_lock_give(&trainer->lock);
    return status;
}

int mpidata_trainer_record_numbers(int64_t *numbers) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    const int n = trainer->job.plan.n_numbers;
    for (int64_t i = 0; i < trainer->record.n_taken && n; i++, numbers += n)
        memcpy(numbers, trainer->record.taken[i]->parts.numbers, (size_t)n * sizeof *numbers);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_record_constants(const mpidata_try_constants **constants) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    for (int64_t i = 0; i < trainer->record.n_taken; i++) constants[i] = trainer->record.taken[i]->constants;
    return MPIDATA_SUCCESS;
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
    drop_locked(trainer, trainer->record.waiting.samples);
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
