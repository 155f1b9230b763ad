#include "stream/progress.h"

#include <stdio.h>
#include <string.h>

#include "base/wait.h"
#include "job/usage.h"
#include "stream/budget.h"
#include "stream/shares/shares.h"

/* Batches that may be promised before they are drawn: hides the agreement behind the training step, and limits draws after a
 * stop. At most half the capacity, so that a trainer that runs ahead of a slow one still has samples. */
static int64_t lookahead_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    if (trainer->job.plan.policy == MPIDATA_POLICY_RESERVOIR) return trainer->draws_ahead ? 2 : 1;
    const int64_t steps = trainer->buffer.memory ? 1 : trainer->job.plan.samples_window; /* that the capacity counts of a sample */
    const int64_t capacity = trainer->buffer.memory ? mpidata_buffer_fits(&trainer->buffer) : trainer->job.plan.capacity;
    int64_t most = trainer->batch == 1 ? 64 : 4, half = capacity / (2 * trainer->batch * steps);
    return half < 1 ? 1 : half < most ? half : most;
}

int64_t mpidata_trainer_guaranteed_locked(const mpidata_trainer *trainer, int *final) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_buffer *buffer = &trainer->buffer;
    int64_t available = mpidata_buffer_available(buffer);
    *final = 0;
    if (!trainer->batch) return 0;
    if (buffer->ended && buffer->keeps) {
        *final = 1; /* as far as this trainer knows: the budget decides how often it is drawn */
        return trainer->drawn + (available > 0);
    }
    if (buffer->ended) {
        /* The rest of a large buffer is not promised at once: a checkpoint comes after the promised batches. */
        int64_t next = lookahead_locked(trainer), rest = mpidata_batches_filled_locked(trainer, available, next + 1);
        *final = rest <= next;
        return trainer->drawn + (*final ? rest : next);
    }
    /* In a reservoir draws are unlimited, but at the end of the stream the promised ones must still be possible. */
    const int64_t samples = available == INT64_MAX ? buffer->count : available;
    return trainer->drawn + mpidata_batches_filled_locked(trainer, samples, lookahead_locked(trainer));
}

static int *draws_of_locked(mpidata_trainer *trainer, int64_t number) {
    MPIDATA_LOCKED(&trainer->lock);
    return trainer->windows.plan ? &trainer->windows.draws[number] : &trainer->slots.slots[number]->draws;
}

void mpidata_trainer_count_draws_locked(mpidata_trainer *trainer, int64_t number) {
    MPIDATA_LOCKED(&trainer->lock);
    *draws_of_locked(trainer, number) = 0;
    trainer->by_draws[0]++;
}

void mpidata_trainer_count_no_draws_locked(mpidata_trainer *trainer, int64_t number) {
    MPIDATA_LOCKED(&trainer->lock);
    if (*draws_of_locked(trainer, number) == 0) trainer->by_draws[0]--;
}

int mpidata_trainer_check_size_locked(const mpidata_trainer *trainer, int64_t number) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_plan *plan = &trainer->job.plan;
    if (!plan->capacity_in_bytes) return MPIDATA_SUCCESS;
    const long long bytes = mpidata_buffer_bytes(&trainer->buffer, number);
    if (bytes <= plan->capacity) return MPIDATA_SUCCESS;
    const mpidata_slot *slot = trainer->slots.slots[*mpidata_trainer_steps_of_locked(trainer, &number)];
    return mpidata_error(MPIDATA_ERR_ARGUMENT,
                         "The %s simulation %lld, step %lld has %lld bytes, and buffer.capacity is %lld bytes. Raise "
                         "buffer.capacity in the job file: it holds at least one sample.",
                         trainer->windows.plan ? "window from" : "sample of", (long long)*slot->simulation, (long long)*slot->step,
                         bytes, (long long)plan->capacity);
}

int mpidata_trainer_arrive_locked(mpidata_trainer *trainer, int64_t number) {
    MPIDATA_LOCKED(&trainer->lock);
    MPIDATA_TRY(mpidata_trainer_check_size_locked(trainer, number));
    MPIDATA_TRY(mpidata_slots_append(&trainer->arrived, &trainer->n_arrived, &trainer->arrived_allocated, number));
    trainer->statistics.received++;
    mpidata_trainer_count_draws_locked(trainer, number);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_whole_locked(mpidata_trainer *trainer, int64_t number, int validation) {
    MPIDATA_LOCKED(&trainer->lock);
    if (!validation) return mpidata_trainer_arrive_locked(trainer, number);
    trainer->statistics.validation++;
    return mpidata_slots_append(&trainer->validation, &trainer->n_validation, &trainer->validation_allocated, number);
}

int mpidata_held_locked(mpidata_trainer *trainer, int64_t simulation) {
    MPIDATA_LOCKED(&trainer->lock);
    if (!mpidata_ledger_completed(&trainer->ledger, simulation)) return MPIDATA_SUCCESS;
    int64_t by_try = trainer->ledger.entries[simulation].expected_by;
    if (trainer->windows.plan) mpidata_windows_drop_tries(&trainer->windows, simulation, by_try);
    mpidata_event event = {.kind = MPIDATA_EVENT_HELD, .held = {simulation, by_try}};
    return mpidata_trainer_post_locked(trainer, &event);
}

int mpidata_trainer_has_step_locked(const mpidata_trainer *trainer, int64_t simulation, int64_t step) {
    MPIDATA_LOCKED(&trainer->lock);
    return trainer->windows.plan ? !mpidata_windows_want(&trainer->windows, simulation, step)
                                 : mpidata_ledger_has(&trainer->ledger, simulation, step);
}

int mpidata_is_anothers_locked(const mpidata_trainer *trainer, int64_t simulation, int64_t step) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_plan *plan = &trainer->job.plan;
    return plan->trainers_at_least && !trainer->windows.plan && mpidata_plan_trainer(plan, simulation, step) != trainer->job.index;
}

int mpidata_trainer_fill_buffer_locked(mpidata_trainer *trainer, int64_t *n) {
    MPIDATA_LOCKED(&trainer->lock);
    const int64_t *arrived = trainer->arrived;
    int64_t evicted;
    const int64_t refused = trainer->buffer.refused;
    for (*n = 0; *n < trainer->n_arrived && mpidata_buffer_has_room(&trainer->buffer, arrived[*n]); ++*n) {
        if (!trainer->windows.plan) /* windows have no journal */
            MPIDATA_TRY(mpidata_journal_sample(&trainer->journal, &trainer->slots, arrived[*n]));
        while ((evicted = mpidata_buffer_evict(&trainer->buffer, arrived[*n])) >= 0)
            mpidata_trainer_give_back_locked(trainer, evicted);
        if (mpidata_buffer_reserve(&trainer->buffer))
            return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a list of samples.");
        if ((evicted = mpidata_buffer_add(&trainer->buffer, arrived[*n])) >= 0)
            mpidata_trainer_give_back_locked(trainer, evicted);
    }
    /* A buffer in bytes that has just become full is above its watermark. */
    if (trainer->buffer.memory && trainer->buffer.refused != refused) mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
    if (!*n) return MPIDATA_SUCCESS;
    trainer->n_arrived -= *n;
    memmove(trainer->arrived, trainer->arrived + *n, (size_t)trainer->n_arrived * sizeof *trainer->arrived);
    return MPIDATA_SUCCESS;
}

void mpidata_trainer_count_draw_locked(mpidata_trainer *trainer, int64_t number) {
    MPIDATA_LOCKED(&trainer->lock);
    int *draws = draws_of_locked(trainer, number);
    if (*draws < 0 || *draws == MPIDATA_DRAWS_MOST) return;
    trainer->by_draws[(*draws)++]--;
    trainer->by_draws[*draws]++;
}

const int64_t *mpidata_trainer_steps_of_locked(const mpidata_trainer *trainer, const int64_t *number) {
    MPIDATA_LOCKED(&trainer->lock);
    return trainer->windows.plan ? mpidata_windows_steps(&trainer->windows, *number) : number;
}

void mpidata_trainer_give_back_locked(mpidata_trainer *trainer, int64_t number) {
    MPIDATA_LOCKED(&trainer->lock);
    if (trainer->windows.plan)
        mpidata_windows_give_back(&trainer->windows, number);
    else
        mpidata_slots_give_back(&trainer->slots, number);
}

int mpidata_trainer_post_draws_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    for (int draws = 0; draws <= MPIDATA_DRAWS_MOST; draws++) {
        char name[32];
        if (!trainer->by_draws[draws]) continue;
        (void)snprintf(name, sizeof name, "draws.%d", draws);
        MPIDATA_TRY(mpidata_trainer_post_report_locked(trainer, name, (double)trainer->by_draws[draws]));
    }
    if (!trainer->giving.taken || trainer->giving.phase != MPIDATA_KEEPS) return MPIDATA_SUCCESS; /* they were handed on */
    return mpidata_trainer_post_report_locked(trainer, "handed.over", (double)trainer->giving.taken);
}

mpidata_statistics mpidata_trainer_statistics_now_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_statistics statistics = trainer->statistics;
    statistics.drawn = mpidata_batches_had_locked(trainer);
    statistics.windows = trainer->buffer.count;
    statistics.fill = mpidata_buffer_fill(&trainer->buffer);
    statistics.capacity = trainer->buffer.capacity;
    return statistics;
}

int mpidata_trainer_post_status_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    int final;
    mpidata_event event = {.kind = MPIDATA_EVENT_STATUS,
                           .status = {.statistics = mpidata_trainer_statistics_now_locked(trainer),
                                      .ended = mpidata_draws_told(&trainer->phase),
                                      .all_drawn = trainer->phase.all_drawn}};
    double waits = trainer->waiting ? mpidata_now() - trainer->waits_since : 0.0;
    event.status.usage = mpidata_usage_now();
    event.status.idle = trainer->batch > 1 && !trainer->shares.total && !trainer->giving.asked;
    if (trainer->giving.asks_since > 0.0 && !mpidata_draws_ended(&trainer->phase))
        event.status.asks_us = (int64_t)(1e6 * (mpidata_now() - trainer->giving.asks_since));
    event.status.waited_us = (int64_t)(1e6 * (trainer->waited + waits));
    int replayed = trainer->journal.replayed != NULL; /* a replay makes no room that is not in the journal */
    event.status.starved =
        !replayed && trainer->waiting && mpidata_trainer_guaranteed_locked(trainer, &final) <= trainer->granted && !final;
    event.status.full = !replayed && (trainer->n_arrived > 0 || mpidata_buffer_full(&trainer->buffer));
    /* If samples differ in size, the trainers hold different numbers, so that others may wait for one that is behind. */
    if (trainer->buffer.memory && mpidata_budget_behind_locked(trainer)) event.status.full = !replayed;
    return mpidata_trainer_post_locked(trainer, &event);
}
