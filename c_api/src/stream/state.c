#include "stream/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"

static mpidata_trainer *the_trainer; /* one per process */

int mpidata_the_trainer(mpidata_trainer **trainer) {
    *trainer = the_trainer;
    if (the_trainer) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ORDER, "This process has not joined a job as a trainer.");
}

void mpidata_trainer_set(mpidata_trainer *trainer) { the_trainer = trainer; }

void mpidata_trainer_wake_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    trainer->woken = 1;
    (void)pthread_cond_signal(&trainer->wake);
}

/* Does only the newer one of the two count? Sums of the record, whose names have a dot, all do. */
static int supersedes(const mpidata_event *newer, const mpidata_event *older) {
    if (newer->kind != older->kind) return 0;
    if (newer->kind == MPIDATA_EVENT_REPORT) return !strchr(newer->text, '.') && !strcmp(newer->text, older->text);
    return newer->kind == MPIDATA_EVENT_STATUS || newer->kind == MPIDATA_EVENT_CHECKPOINT_WANTED;
}

/* A scheduler that takes nothing for a while costs no memory without end. Of reports the first one counts, too. */
static void drop_superseded_locked(mpidata_trainer *trainer, const mpidata_event *event) {
    MPIDATA_LOCKED(&trainer->lock);
    int keep = event->kind == MPIDATA_EVENT_REPORT;
    mpidata_outgoing **at = &trainer->outbox;
    for (mpidata_outgoing *old; (old = *at);) {
        if (!supersedes(event, &old->event) || keep-- > 0) {
            at = &old->next;
            continue;
        }
        *at = old->next;
        free(old);
    }
    trainer->outbox_end = at;
}

int mpidata_trainer_post_locked(mpidata_trainer *trainer, const mpidata_event *event) {
    MPIDATA_LOCKED(&trainer->lock);
    drop_superseded_locked(trainer, event);
    mpidata_outgoing *outgoing = malloc(sizeof *outgoing);
    if (!outgoing) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a message to the scheduler.");
    outgoing->event = *event;
    outgoing->event.rank = trainer->job.rank;
    outgoing->event.index = trainer->job.index;
    outgoing->next = NULL;
    *trainer->outbox_end = outgoing;
    trainer->outbox_end = &outgoing->next;
    return MPIDATA_SUCCESS;
}

void mpidata_trainer_fail_locked(mpidata_trainer *trainer, int status) {
    MPIDATA_LOCKED(&trainer->lock);
    if (trainer->error) return;
    trainer->error = status;
    memcpy(trainer->error_text, mpidata_last_error(), sizeof trainer->error_text);
    mpidata_event event = {.kind = MPIDATA_EVENT_ERROR};
    (void)snprintf(event.text, sizeof event.text, "%s", trainer->error_text);
    (void)mpidata_trainer_post_locked(trainer, &event);
    (void)pthread_cond_broadcast(&trainer->news);
}

int mpidata_report_error_of_trainer(const char *sentence) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_event event = {.kind = MPIDATA_EVENT_ERROR};
    (void)snprintf(event.text, sizeof event.text, "%s", sentence);
    mpidata_lock_take(&trainer->lock);
    int status = mpidata_trainer_post_locked(trainer, &event);
    mpidata_trainer_wake_locked(trainer);
    mpidata_lock_give(&trainer->lock);
    return status;
}

int mpidata_trainer_open_state(mpidata_trainer *trainer) {
    trainer->outbox_end = &trainer->outbox;
    if (mpidata_lock_open(&trainer->lock) || mpidata_condition_open(&trainer->news) ||
        mpidata_condition_open(&trainer->wake))
        return mpidata_error(MPIDATA_ERR_MEMORY, "The trainer's locks cannot be made.");
    trainer->phase.lock = trainer->parcels.lock = &trainer->lock;
    return mpidata_record_open(&trainer->record, &trainer->lock);
}

int mpidata_trainer_open_memory(mpidata_trainer *trainer) {
    const mpidata_plan *plan = &trainer->job.plan;
    MPIDATA_TRY(mpidata_trainer_open_state(trainer));
    MPIDATA_TRY(mpidata_ledger_open(&trainer->ledger, plan, trainer->job.index));
    if (mpidata_slots_open(&trainer->slots, plan)) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the trainer.");
    if (mpidata_buffer_open(&trainer->buffer, plan->policy, plan->capacity, plan->watermark, plan->seed,
                            (uint64_t)trainer->job.index))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a buffer of %lld samples. Lower buffer.capacity.",
                             (long long)plan->capacity);
    trainer->buffer.keeps = plan->repeats > 0;
    mpidata_windows_open(&trainer->windows, plan, &trainer->ledger, &trainer->slots);
    if (trainer->windows.plan) trainer->buffer.windows = &trainer->windows;
    return MPIDATA_SUCCESS;
}

void mpidata_trainer_close_state(mpidata_trainer *trainer) {
    mpidata_record_close(&trainer->record);
    mpidata_parcel_queue_close(&trainer->parcels);
    mpidata_lock_close(&trainer->lock);
    (void)pthread_cond_destroy(&trainer->news);
    (void)pthread_cond_destroy(&trainer->wake);
}

int mpidata_trainer_wait_locked(mpidata_trainer *trainer, double deadline) {
    MPIDATA_LOCKED(&trainer->lock);
    return mpidata_lock_sleep_locked(&trainer->lock, &trainer->news, deadline);
}

double mpidata_trainer_deadline(double timeout_s) { return mpidata_now() + (timeout_s < 1e9 ? timeout_s : 1e9); }
