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
    mpidata_lock_tell_locked(&trainer->lock, &trainer->wake);
}

enum { MOST_REPORTS = 512 }; /* events of about 50 values each */

static void drop_locked(mpidata_trainer *trainer, mpidata_outgoing **at) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_outgoing *old = *at;
    *at = old->next;
    if (!old->next) trainer->outbox_end = at;
    free(old);
}

/* Messages before a goodbye must arrive before it, for example that the trainer has had all samples. */
static mpidata_outgoing **after_goodbye_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_outgoing **from = &trainer->outbox;
    for (mpidata_outgoing **at = from; *at; at = &(*at)->next)
        if ((*at)->event.kind == MPIDATA_EVENT_GOODBYE) from = &(*at)->next;
    return from;
}

/* Of statuses, and of requests for a checkpoint, only the newest counts: a scheduler that takes nothing for a while must not
 * cost unlimited memory. */
static void drop_superseded_locked(mpidata_trainer *trainer, const mpidata_event *event) {
    MPIDATA_LOCKED(&trainer->lock);
    if (event->kind != MPIDATA_EVENT_STATUS && event->kind != MPIDATA_EVENT_CHECKPOINT_WANTED) return;
    for (mpidata_outgoing **at = after_goodbye_locked(trainer); *at;) {
        if ((*at)->event.kind == event->kind)
            drop_locked(trainer, at);
        else
            at = &(*at)->next;
    }
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

/* mpidata's own sums, whose names have a dot, all count. */
static int counts(const mpidata_event *event) {
    return strchr(event->text + sizeof(int64_t) + sizeof(double), '.') != NULL; /* in the first name */
}

int64_t mpidata_batches_had_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    return trainer->drawn - trainer->ahead;
}

int mpidata_trainer_post_report_locked(mpidata_trainer *trainer, const char *name, double value) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_event event = {.kind = MPIDATA_EVENT_REPORT};
    (void)mpidata_reports_add(&event, name, mpidata_batches_had_locked(trainer), value);
    mpidata_outgoing *last = NULL, **second = NULL;
    int n = 0;
    for (mpidata_outgoing **at = &trainer->outbox; *at; at = &(*at)->next) {
        if ((*at)->event.kind != MPIDATA_EVENT_REPORT || counts(&(*at)->event) != counts(&event)) continue;
        last = *at;
        if (++n == 2) second = at;
    }
    if (last && mpidata_reports_add(&last->event, name, mpidata_batches_had_locked(trainer), value)) return MPIDATA_SUCCESS;
    if (n >= MOST_REPORTS && !counts(&event)) drop_locked(trainer, second); /* the first value of a name also counts */
    return mpidata_trainer_post_locked(trainer, &event);
}

void mpidata_trainer_fail_locked(mpidata_trainer *trainer, int status) {
    MPIDATA_LOCKED(&trainer->lock);
    if (trainer->error) return;
    trainer->error = status;
    memcpy(trainer->error_text, mpidata_last_error(), sizeof trainer->error_text);
    mpidata_event event = {.kind = MPIDATA_EVENT_ERROR};
    (void)snprintf(event.text, sizeof event.text, "%s", trainer->error_text);
    /* The scheduler learns of a death from MPI and mpidata-rank, with its cause, which this trainer does not know. */
    if (status != MPIDATA_ERR_DIED) (void)mpidata_trainer_post_locked(trainer, &event);
    mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
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
    mpidata_versions_open(&trainer->versions, &trainer->lock);
    return mpidata_record_open(&trainer->record, &trainer->lock);
}

int mpidata_trainer_open_memory(mpidata_trainer *trainer) {
    const mpidata_plan *plan = &trainer->job.plan;
    MPIDATA_TRY(mpidata_trainer_open_state(trainer));
    MPIDATA_TRY(mpidata_ledger_open(&trainer->ledger, plan, trainer->job.index));
    if (mpidata_slots_open(&trainer->slots, plan)) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the trainer.");
    const int64_t samples = plan->capacity_in_bytes ? 0 : plan->capacity;
    if (mpidata_buffer_open(&trainer->buffer, plan->policy, samples, plan->watermark, plan->seed, (uint64_t)trainer->job.index))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a buffer of %lld samples. Lower buffer.capacity.",
                             (long long)plan->capacity);
    if (plan->capacity_in_bytes) mpidata_buffer_count_bytes(&trainer->buffer, &trainer->slots, plan->capacity);
    MPIDATA_TRY(mpidata_scales_open(&trainer->scales, plan));
    trainer->buffer.keeps = plan->repeats > 0;
    mpidata_windows_open(&trainer->windows, plan, &trainer->ledger, &trainer->slots);
    if (trainer->windows.plan) trainer->buffer.windows = &trainer->windows;
    trainer->windows.in_bytes = plan->capacity_in_bytes;
    if (mpidata_buffer_know_simulations(&trainer->buffer, &trainer->slots, plan->simulations + plan->validation))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the counts of %lld simulations.", (long long)plan->simulations);
    return MPIDATA_SUCCESS;
}

void mpidata_trainer_close_state(mpidata_trainer *trainer) {
    mpidata_record_close(&trainer->record);
    mpidata_parcel_queue_close(&trainer->parcels);
    if (!trainer->slots_in_use) mpidata_versions_close(&trainer->versions);
    mpidata_lock_close(&trainer->lock);
    (void)pthread_cond_destroy(&trainer->news);
    (void)pthread_cond_destroy(&trainer->wake);
}

int mpidata_trainer_wait_locked(mpidata_trainer *trainer, double deadline) {
    MPIDATA_LOCKED(&trainer->lock);
    return mpidata_now() < deadline && mpidata_lock_sleep_locked(&trainer->lock, &trainer->news, deadline);
}

double mpidata_trainer_deadline(double timeout_s) { return mpidata_now() + (timeout_s < 1e9 ? timeout_s : 1e9); }
