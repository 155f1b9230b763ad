#include "trainer/draw.h"

#include <stdlib.h>
#include <string.h>

#include "base/beat.h"
#include "base/wait.h"
#include "buffer/copy.h"
#include "stream/budget.h"
#include "stream/checkpoint.h"
#include "stream/deaths/adoption.h"
#include "stream/giving/giving.h"
#include "stream/progress.h"
#include "stream/shares/shares.h"
#include "stream/shares/sizes.h"
#include "trainer/constants/drawn.h"

enum { UNPIN_EVERY = 256 << 10 }; /* bytes: the next sample is received while their slots are still in cache */

static int too_small(const mpidata_plan *plan, int64_t least, int64_t count, int together) {
    return mpidata_error(MPIDATA_ERR_ARGUMENT,
                         "buffer.capacity is %lld, but batches of %lld samples%s need at least %lld%s%s. Raise "
                         "buffer.capacity in the job file, or lower %s.",
                         (long long)plan->capacity, (long long)count,
                         together && plan->trainers_at_least ? ", as trainers.elastic.at_least trainers would have," : "",
                         (long long)least, plan->policy == MPIDATA_POLICY_FIRO ? " (buffer.watermark + batch_size)" : "",
                         plan->samples_window > 1 ? ", times samples.window" : "", together ? "global_batch_size" : "batch_size");
}

/* Only if a batch consists of samples that came together, and none of them is kept to be repeated. A page's order is not that
 * of the buffer, which the journal has. */
static int hands_out_pages(const mpidata_plan *plan, int together) {
    return plan->policy == MPIDATA_POLICY_FIFO && plan->tail == MPIDATA_TAIL_DROP && !plan->journal && !plan->replay &&
           plan->samples_window == 1 && !plan->n_numbers && !together;
}

static int check_capacity(const mpidata_plan *plan, int64_t count, int together) {
    int64_t most = INT64_MAX / plan->samples_window - plan->watermark;
    int64_t least = plan->policy == MPIDATA_POLICY_FIRO && count < most ? plan->watermark + count : count;
    if (least <= most) least *= plan->samples_window;
    if (plan->capacity_in_bytes || plan->capacity >= least) return MPIDATA_SUCCESS;
    (void)too_small(plan, least, count, together);
    (void)mpidata_report_error_of_trainer(mpidata_last_error());
    return MPIDATA_ERR_ARGUMENT;
}

/* Set the samples of a batch, or those of all trainers together; the other one is 0. */
static int start(int64_t batch, int64_t total) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    const mpidata_plan *plan = &trainer->job.plan;
    MPIDATA_TRY(check_capacity(plan, mpidata_batch_at_most(plan, batch, total), total > 0));
    mpidata_lock_take(&trainer->lock);
    const int64_t had = trainer->shares.total ? trainer->shares.total : trainer->batch;
    int status = MPIDATA_SUCCESS;
    if (trainer->batch && (had != batch + total || !trainer->shares.total != !total))
        status = mpidata_error(MPIDATA_ERR_ORDER, "The stream is already drawn in batches of %lld, not of %lld.",
                               (long long)had, (long long)(batch + total));
    else if (!trainer->batch && hands_out_pages(plan, total > 0) && mpidata_slots_batch(&trainer->slots, batch))
        status = mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for batches of %lld.", (long long)batch);
    else if (!trainer->batch)
        status = mpidata_batches_start_locked(trainer, batch, total);
    mpidata_trainer_wake_locked(trainer);
    mpidata_lock_give(&trainer->lock);
    return status;
}

int mpidata_trainer_start(int64_t count) {
    if (count < 1)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "batch_size is %lld. Use 1 or more.", (long long)count);
    return start(count, 0);
}

int mpidata_trainer_start_together(int64_t total) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    const mpidata_plan *plan = &trainer->job.plan;
    if (total < plan->trainers)
        return mpidata_error(MPIDATA_ERR_ARGUMENT,
                             "global_batch_size is %lld, but there are %d trainers%s, each of which needs a sample. Raise it, or "
                             "lower trainers.ranks in the job file.",
                             (long long)total, plan->trainers, plan->trainer_spares ? " and spares" : "");
    if (plan->journal || plan->replay)
        return mpidata_error(MPIDATA_ERR_ARGUMENT,
                             "global_batch_size does not go with %s: a journal knows batches of one size. Give batch_size.",
                             plan->journal ? "'journal' in the job file" : "a replay");
    return start(0, total);
}

/* A single trainer grants its own batches. */
static void grant_alone_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    if (trainer->job.plan.trainers > 1) return;
    int final, budget = trainer->job.plan.repeats > 0;
    trainer->granted = mpidata_trainer_guaranteed_locked(trainer, &final);
    if (budget && !mpidata_budget_allows_locked(trainer, final)) trainer->granted = trainer->drawn;
    if (final && !budget && trainer->job.plan.tail == MPIDATA_TAIL_REPEAT && trainer->buffer.count > 0)
        trainer->granted = trainer->drawn + mpidata_batches_needed_locked(trainer, trainer->buffer.count);
    if (mpidata_stopping(&trainer->phase)) trainer->granted = trainer->drawn;
    int over = final && trainer->granted <= trainer->drawn;
    if (over && budget) (void)mpidata_budget_end_locked(trainer, trainer->statistics.received);
    if (mpidata_stopping(&trainer->phase))
        mpidata_phase_cut_short_locked(&trainer->phase);
    else if (over)
        mpidata_phase_end_draws_locked(&trainer->phase);
}

/* Each trainer draws as its journal says, without an agreement: the run that wrote the journals had made it. */
static int grant_replayed_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_journal *journal = &trainer->journal;
    if (mpidata_stopping(&trainer->phase))
        mpidata_phase_cut_short_locked(&trainer->phase);
    else if (journal->next.kind == MPIDATA_JOURNAL_OVER)
        mpidata_phase_end_draws_locked(&trainer->phase);
    else if (journal->next.kind == MPIDATA_JOURNAL_DRAW)
        trainer->granted = trainer->drawn + 1;
    if (journal->next.kind != MPIDATA_JOURNAL_STOPS || mpidata_draws_ended(&trainer->phase)) return MPIDATA_SUCCESS;
    int status = mpidata_error(MPIDATA_ERR_ARGUMENT,
                               "The replayed run, %s, ends after %lld batches, because it was cut short, but this one "
                               "requests another. Leave the loop there to end in order.",
                               trainer->job.plan.replay, (long long)journal->draws);
    mpidata_trainer_fail_locked(trainer, status);
    mpidata_trainer_wake_locked(trainer);
    return status;
}

/* A drawn sample's slot stays until `batch` more have been drawn, if the tail may repeat it. */
static void retire_locked(mpidata_trainer *trainer, int64_t slot) {
    MPIDATA_LOCKED(&trainer->lock);
    if (trainer->job.plan.tail == MPIDATA_TAIL_DROP) {
        mpidata_trainer_give_back_locked(trainer, slot);
        return;
    }
    if (trainer->n_retired < trainer->batch) {
        trainer->retired[trainer->n_retired++] = slot;
        return;
    }
    mpidata_trainer_give_back_locked(trainer, trainer->retired[trainer->next_retired]);
    trainer->retired[trainer->next_retired] = slot;
    trainer->next_retired = (trainer->next_retired + 1) % trainer->batch;
}

/* The loop gets one more batch. */
static void count_had_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    const int64_t had = mpidata_batches_had_locked(trainer);
    mpidata_tell_batches(trainer->job.plan.n_fields ? had : had - trainer->began);
    mpidata_scales_drawn(&trainer->scales, &trainer->job.plan, had);
}

static void count_batch_locked(mpidata_trainer *trainer, int ahead) {
    MPIDATA_LOCKED(&trainer->lock);
    trainer->drawn++;
    if (ahead)
        trainer->ahead++;
    else
        count_had_locked(trainer);
}

int mpidata_trainer_had_ahead(void) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    int status = trainer->ahead > 0 ? MPIDATA_SUCCESS : mpidata_error(MPIDATA_ERR_ORDER, "No batch was drawn ahead.");
    if (!status) {
        trainer->ahead--;
        count_had_locked(trainer);
    }
    mpidata_lock_give(&trainer->lock);
    return status;
}

typedef struct mpidata_drawn_step {
    int64_t number; /* of the slot */
    const mpidata_slot *slot;
} drawn_step;

/* Pin the steps of a sample that was drawn, samples_window of them. */
static void take_steps_locked(mpidata_trainer *trainer, int64_t number, drawn_step *drawn) {
    MPIDATA_LOCKED(&trainer->lock);
    const int64_t *steps = mpidata_trainer_steps_of_locked(trainer, &number);
    for (int i = 0; i < trainer->job.plan.samples_window; i++) {
        mpidata_slot *slot = trainer->slots.slots[steps[i]];
        slot->pins++;
        drawn[i] = (drawn_step){steps[i], slot};
    }
    mpidata_trainer_count_draw_locked(trainer, number);
}

/* One draw, pinned. */
static void draw_one_locked(mpidata_trainer *trainer, drawn_step *drawn) {
    MPIDATA_LOCKED(&trainer->lock);
    int removed = 0, repeat = trainer->buffer.count == 0;
    int64_t number = repeat ? trainer->retired[mpidata_random_below(&trainer->buffer.random, trainer->n_retired)]
                            : mpidata_buffer_draw(&trainer->buffer, &removed);
    take_steps_locked(trainer, number, drawn);
    if (removed) retire_locked(trainer, number);
}

/* A batch, pinned, for which samples repeat no sooner than they must. */
static int draw_distinct_locked(mpidata_trainer *trainer, drawn_step *drawn) {
    MPIDATA_LOCKED(&trainer->lock);
    size_t n = (size_t)trainer->last_size;
    int64_t *numbers = malloc(2 * n * sizeof *numbers);
    if (!numbers) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a batch.");
    mpidata_buffer_draw_distinct(&trainer->buffer, trainer->last_size, numbers, numbers + n);
    for (size_t i = 0; i < n; i++)
        take_steps_locked(trainer, numbers[i], drawn + i * (size_t)trainer->job.plan.samples_window);
    free(numbers);
    return MPIDATA_SUCCESS;
}

/* Lengths of a batch: by length, the index at which the next step begins, and the total; in a padded one, 0 and the longest. */
typedef struct {
    int64_t *at, *all;       /* NULL: there are no lengths */
    int shifted;             /* as in mpidata_packing */
    const void *const *fill;
    int past_cache;          /* it is larger than the cache: copied past it */
} packed_lengths;

/* Copy the i-th step of a batch; data that the steps of a sample share is copied with the first. */
static void copy_step(const mpidata_trainer *trainer, const mpidata_slot *slot, int64_t i, const packed_lengths *packed,
                      void *const *fields, double *parameters, double *time, int64_t *step, int64_t *simulation) {
    const mpidata_plan *plan = &trainer->job.plan;
    const mpidata_packing packing = {.at = packed->at, .all = packed->all, .shifted = packed->shifted,
                                     .place = packed->fill ? i : 0, .fill = packed->fill};
    mpidata_slot_copy(&trainer->slots, slot, i, &packing, fields, packed->past_cache ? mpidata_copy_past_cache : memcpy);
    for (int l = 0; l < plan->n_lengths && !packed->fill; l++) packed->at[l] += slot->parts.numbers[l];
    time[i] = *slot->time;
    step[i] = *slot->step;
    if (i % plan->samples_window) return;
    size_t n = (size_t)plan->n_parameters, sample = (size_t)(i / plan->samples_window);
    if (n) memcpy(parameters + sample * n, slot->parameters, n * sizeof *parameters);
    simulation[sample] = *slot->simulation;
}

/* Whether no more batches come. A lagging trainer may still get samples of granted batches. */
static int is_over_locked(const mpidata_trainer *trainer, int lags) {
    MPIDATA_LOCKED(&trainer->lock);
    if (trainer->checkpoint.asking || !mpidata_draws_ended(&trainer->phase)) return 0;
    return !lags || trainer->buffer.ended || trainer->phase.cut_short;
}

/* Whether the first agreement since a change may still change sizes, or determine the batch of a checkpoint that some know. */
static int awaits_word_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    return trainer->shares.total || trainer->shares.anew || trainer->checkpoint.wanted > trainer->checkpoint.agreed;
}

static int is_granted_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    const int holds = trainer->checkpoint.asking || (trainer->shares.changes && awaits_word_locked(trainer));
    return trainer->drawn < trainer->granted && !holds && !mpidata_lags_locked(trainer);
}

/* Whether the next batch may be drawn now, ahead of the loop. All other outcomes are left to the draw that waits. */
static int may_draw_ahead_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    trainer->draws_ahead = 1;
    if (trainer->error || !trainer->batch || mpidata_draws_left(&trainer->phase)) return 0;
    if (!trainer->journal.replayed)
        grant_alone_locked(trainer);
    else if (trainer->journal.next.kind == MPIDATA_JOURNAL_DRAW)
        trainer->granted = trainer->drawn + 1;
    return !mpidata_checkpoint_is_due_locked(trainer) && is_granted_locked(trainer);
}

/* MPIDATA_SUCCESS when a batch is granted. */
static int wait_for_grant_locked(mpidata_trainer *trainer, double deadline) {
    MPIDATA_LOCKED(&trainer->lock);
    trainer->giving.asked = 1;
    for (;;) {
        if (trainer->error) return mpidata_error(trainer->error, "%s", trainer->error_text);
        if (!trainer->batch) return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_trainer_draw before mpidata_trainer_start.");
        if (!trainer->journal.replayed)
            grant_alone_locked(trainer);
        else
            MPIDATA_TRY(grant_replayed_locked(trainer));
        if (mpidata_draws_left(&trainer->phase)) return MPIDATA_END;
        if (mpidata_checkpoint_is_due_locked(trainer)) return MPIDATA_CHECKPOINT;
        const int granted = is_granted_locked(trainer);
        if (granted) trainer->giving.asks_since = 0.0;
        if (granted) return MPIDATA_SUCCESS;
        if (mpidata_must_meet_locked(trainer)) return MPIDATA_MEET;
        if (is_over_locked(trainer, mpidata_lags_locked(trainer))) return MPIDATA_END;
        trainer->waiting = 1;
        trainer->waits_since = mpidata_now();
        if (trainer->giving.asks_since <= 0.0) trainer->giving.asks_since = trainer->waits_since;
        int in_time = mpidata_trainer_wait_locked(trainer, deadline);
        trainer->waiting = 0;
        trainer->waited += mpidata_now() - trainer->waits_since;
        if (!in_time) return mpidata_error(MPIDATA_ERR_AGAIN, "No batch within the given time.");
    }
}

static void tell_end_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_phase_tell_end_locked(&trainer->phase);
    mpidata_scales_drawn(&trainer->scales, &trainer->job.plan, INT64_MAX);
}

/* Wait until a batch may be drawn, or with timeout_s < 0 find out whether one may be drawn ahead of the loop. */
static int await_grant_locked(mpidata_trainer *trainer, double timeout_s) {
    MPIDATA_LOCKED(&trainer->lock);
    if (timeout_s < 0.0)
        return may_draw_ahead_locked(trainer) ? MPIDATA_SUCCESS : mpidata_error(MPIDATA_ERR_AGAIN, "No batch is granted now.");
    int status = wait_for_grant_locked(trainer, mpidata_trainer_deadline(timeout_s));
    if (status == MPIDATA_END) tell_end_locked(trainer);
    return status;
}

int mpidata_trainer_ahead(double timeout_s) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    int status = await_grant_locked(trainer, timeout_s);
    mpidata_lock_give(&trainer->lock);
    return status;
}

int mpidata_trainer_count_batch(double timeout_s) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    double deadline = mpidata_trainer_deadline(timeout_s);
    int status = MPIDATA_ERR_AGAIN, in_time = 1;
    mpidata_lock_take(&trainer->lock);
    while (status == MPIDATA_ERR_AGAIN && in_time) {
        if (trainer->error) {
            status = mpidata_error(trainer->error, "%s", trainer->error_text);
        } else if (mpidata_draws_left(&trainer->phase) || mpidata_stopping(&trainer->phase)) {
            status = MPIDATA_END;
        } else if (mpidata_checkpoint_is_due_locked(trainer)) {
            status = MPIDATA_CHECKPOINT;
        } else if (!trainer->checkpoint.asking && !trainer->checkpoint.joining) {
            count_batch_locked(trainer, 0);
            status = MPIDATA_SUCCESS;
        } else {
            in_time = mpidata_trainer_wait_locked(trainer, deadline);
        }
    }
    if (!in_time) status = mpidata_error(MPIDATA_ERR_AGAIN, "The trainers have not agreed within the given time.");
    mpidata_lock_give(&trainer->lock);
    return status;
}

/* Draw a batch that was granted, pinned; NULL with *status. */
static drawn_step *draw_batch_locked(mpidata_trainer *trainer, int ahead, int *status) {
    MPIDATA_LOCKED(&trainer->lock);
    const int64_t window = trainer->job.plan.samples_window;
    trainer->last_size = mpidata_batch_size_locked(trainer, trainer->drawn, NULL);
    const int64_t steps = trainer->last_size * window;
    drawn_step *drawn = malloc((size_t)steps * sizeof *drawn);
    *status = drawn ? MPIDATA_SUCCESS : mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a batch.");
    if (!*status && (*status = mpidata_journal_note(&trainer->journal, MPIDATA_JOURNAL_DRAW, trainer->last_size)))
        mpidata_trainer_fail_locked(trainer, *status);
    if (!*status && trainer->job.plan.repeats > 0) *status = draw_distinct_locked(trainer, drawn);
    else for (int64_t i = 0; i < steps && !*status; i += window) draw_one_locked(trainer, drawn + i);
    if (!*status) {
        count_batch_locked(trainer, ahead);
        mpidata_trainer_wake_locked(trainer);
        return drawn;
    }
    free(drawn);
    return NULL;
}

/* Wait for the next batch, and draw it, or take one that was already drawn. NULL with the status. */
static drawn_step *next_batch(mpidata_trainer *trainer, double timeout_s, int *status) {
    mpidata_lock_take(&trainer->lock);
    drawn_step *drawn = trainer->next_batch;
    trainer->next_batch = NULL;
    *status = drawn ? MPIDATA_SUCCESS : await_grant_locked(trainer, timeout_s);
    if (!drawn && !*status) drawn = draw_batch_locked(trainer, timeout_s < 0.0, status);
    mpidata_lock_give(&trainer->lock);
    return drawn;
}

/* Indices are shifted in their own dtype. */
static int check_reach(const mpidata_plan *plan, const int64_t *all) {
    for (int f = 0; f < plan->n_fields; f++) {
        const mpidata_field *field = &plan->fields[f];
        if (field->index_of < 0 || field->element_size > sizeof(int32_t) || all[field->index_of] <= INT32_MAX) continue;
        return mpidata_error(MPIDATA_ERR_ARGUMENT,
                             "A batch has %lld '%s', more than field '%s' of int32 can count. Lower batch_size, or declare int64.",
                             (long long)all[field->index_of], plan->lengths[field->index_of].name, field->name);
    }
    return MPIDATA_SUCCESS;
}

static size_t padded_bytes(const mpidata_plan *plan, const int64_t *longest) {
    size_t bytes = plan->slot_bytes;
    for (const mpidata_field *field = plan->fields; field < plan->fields + plan->n_fields; field++)
        if (field->length >= 0) bytes += (size_t)(longest[field->length] * field->row) * field->element_size;
    return bytes;
}

static int pack(const mpidata_trainer *trainer, const drawn_step *drawn, int64_t steps, packed_lengths *packed) {
    const int n = trainer->job.plan.n_lengths;
    size_t bytes = 0;
    packed->past_cache = trainer->past_cache;
    if (!n) return MPIDATA_SUCCESS;
    packed->at = calloc(2 * (size_t)n, sizeof *packed->at);
    if (!packed->at) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a batch.");
    packed->all = packed->at + n;
    for (int64_t i = 0; i < steps; i++) {
        for (int l = 0; l < n; l++) {
            const int64_t length = drawn[i].slot->parts.numbers[l];
            if (!packed->fill)
                packed->all[l] += length;
            else if (packed->all[l] < length)
                packed->all[l] = length;
        }
        bytes += mpidata_slot_bytes(&trainer->slots, drawn[i].slot);
    }
    if (packed->fill) bytes = (size_t)steps * padded_bytes(&trainer->job.plan, packed->all);
    packed->past_cache = mpidata_exceeds_cache(bytes);
    return packed->shifted ? check_reach(&trainer->job.plan, packed->all) : MPIDATA_SUCCESS;
}

int mpidata_trainer_draw_share(int64_t *count, int64_t *trainers, double timeout_s) {
    mpidata_trainer *trainer;
    int status, of = 1;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    drawn_step *drawn = next_batch(trainer, timeout_s, &status);
    if (!drawn) return status;
    mpidata_lock_take(&trainer->lock);
    trainer->next_batch = drawn;
    *count = mpidata_batch_size_locked(trainer, trainer->drawn - 1, &of);
    *trainers = of;
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_draw_numbers(int64_t *numbers, double timeout_s) {
    mpidata_trainer *trainer;
    int status;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    drawn_step *drawn = next_batch(trainer, timeout_s, &status);
    if (!drawn) return status;
    const int64_t steps = trainer->last_size * trainer->job.plan.samples_window;
    for (int n = 0; n < trainer->job.plan.n_numbers; n++)
        for (int64_t i = 0; i < steps; i++) *numbers++ = drawn[i].slot->parts.numbers[n];
    mpidata_lock_take(&trainer->lock);
    trainer->next_batch = drawn;
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

/* Hold the constants of steps that are unpinned next. */
static int hold_constants_locked(mpidata_trainer *trainer, const drawn_step *drawn, int64_t first, int64_t last) {
    MPIDATA_LOCKED(&trainer->lock);
    if (!first) mpidata_drawn_with_nothing_locked(trainer);
    for (; first <= last; first++) MPIDATA_TRY(mpidata_drawn_with_locked(trainer, drawn[first].slot->constants));
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_draw(void *const *fields, double *parameters, double *time, int64_t *step, int64_t *simulation,
                         double timeout_s) {
    return mpidata_trainer_draw_ragged(1, NULL, fields, parameters, time, step, simulation, timeout_s);
}

int mpidata_trainer_draw_ragged(int shifted, const void *const *fill, void *const *fields, double *parameters, double *time,
                                int64_t *step, int64_t *simulation, double timeout_s) {
    mpidata_trainer *trainer;
    packed_lengths packed = {.shifted = shifted, .fill = fill};
    int status;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    drawn_step *drawn = next_batch(trainer, timeout_s, &status);
    if (!drawn) return status;
    const int64_t steps = trainer->last_size * trainer->job.plan.samples_window;
    status = pack(trainer, drawn, steps, &packed);
    size_t bytes = 0;
    for (int64_t i = 0, pinned = 0; i < steps && !status; i++) {
        bytes += mpidata_slot_bytes(&trainer->slots, drawn[i].slot);
        copy_step(trainer, drawn[i].slot, i, &packed, fields, parameters, time, step, simulation);
        if (i + 1 < steps && bytes < UNPIN_EVERY) continue;
        mpidata_lock_take(&trainer->lock);
        if (trainer->job.plan.n_constants) status = hold_constants_locked(trainer, drawn, pinned, i);
        while (pinned <= i) mpidata_slots_unpin(&trainer->slots, drawn[pinned++].number);
        mpidata_lock_give(&trainer->lock);
        bytes = 0;
    }
    free(packed.at);
    free(drawn);
    return status;
}

/* Draw the page of the oldest sample, if it is whole, or return NULL. One of its samples may have been completed after some of
 * the next page, which then stay for the next batch. Pinned samples are still being written to a file, and must not be
 * changed. */
static mpidata_page *draw_whole_page_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    if (!hands_out_pages(&trainer->job.plan, trainer->shares.total > 0) || trainer->buffer.count < trainer->batch) return NULL;
    mpidata_page *page = trainer->slots.slots[mpidata_buffer_at(&trainer->buffer, 0)]->page;
    if (page->layout != &trainer->slots.batch) return NULL;
    for (int64_t i = 0; i < trainer->batch; i++)
        if (page->slots[i].pins) return NULL;
    if (!mpidata_buffer_draw_together(&trainer->buffer, page->first, trainer->batch, 2 * trainer->batch)) return NULL;
    for (int64_t i = 0; i < trainer->batch; i++) mpidata_trainer_count_draw_locked(trainer, page->first + i);
    return page;
}

int mpidata_trainer_draw_page(int64_t bytes, void **memory, int64_t *page, double timeout_s) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    *memory = NULL;
    mpidata_lock_take(&trainer->lock);
    int status = await_grant_locked(trainer, timeout_s);
    size_t expected = trainer->slots.batch.bytes;
    if (!status && trainer->slots.batch.count && bytes != (int64_t)expected)
        status = mpidata_error(MPIDATA_ERR_ARGUMENT, "A batch has %zu bytes, not %lld.", expected, (long long)bytes);
    mpidata_page *drawn = status ? NULL : draw_whole_page_locked(trainer);
    if (drawn) {
        count_batch_locked(trainer, timeout_s < 0.0);
        mpidata_trainer_wake_locked(trainer);
        *memory = drawn->memory;
        *page = drawn->first;
    }
    mpidata_lock_give(&trainer->lock);
    return status;
}

int mpidata_trainer_give_back(int64_t page) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    for (int64_t i = 0; i < trainer->slots.batch.count; i++) mpidata_slots_give_back(&trainer->slots, page + i);
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}
