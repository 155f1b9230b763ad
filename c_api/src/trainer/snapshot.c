#include "trainer/snapshot.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffer/write.h"
#include "stream/budget.h"
#include "stream/checkpoint.h"
#include "stream/progress.h"

_Static_assert(sizeof((mpidata_snapshot){0}.count) == MPIDATA_PLACES * sizeof(int64_t), "one count for each place");

struct mpidata_pinned {
    mpidata_snapshot head;
    int64_t n;                  /* steps */
    int64_t *windows;           /* steps of each sample, if it has several */
    int64_t *numbers;           /* of their slots; -1: not pinned, or no longer */
    mpidata_slot **slots;       /* their addresses stay while they are pinned */
    int64_t simulations;
    int64_t *steps, *whole, *words; /* the ledger */
    uint8_t *complete;
    uint64_t *bits;
    mpidata_moments *moments; /* if there are statistics */
};

static int need_pinned(mpidata_trainer **trainer, mpidata_pinned **pinned) {
    MPIDATA_TRY(mpidata_the_trainer(trainer));
    *pinned = (*trainer)->checkpoint.pinned;
    if (*pinned) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ORDER, "No snapshot has been taken.");
}

void mpidata_pinned_free(mpidata_pinned *pinned) {
    if (!pinned) return;
    free(pinned->windows);
    free(pinned->numbers);
    free(pinned->slots);
    free(pinned->steps);
    free(pinned->whole);
    free(pinned->words);
    free(pinned->complete);
    free(pinned->bits);
    free(pinned->moments);
    free(pinned);
}

int mpidata_trainer_checkpoint(void) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_event event = {.kind = MPIDATA_EVENT_CHECKPOINT_WANTED};
    mpidata_lock_take(&trainer->lock);
    event.wanted.batch = mpidata_batches_had_locked(trainer);
    int status = mpidata_trainer_post_locked(trainer, &event);
    mpidata_trainer_wake_locked(trainer);
    mpidata_lock_give(&trainer->lock);
    return status;
}

/* -- taking --------------------------------------------------------------------------------------------------------- */

static void fill_head_locked(const mpidata_trainer *trainer, mpidata_snapshot *head) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_buffer *buffer = &trainer->buffer;
    memset(head, 0, sizeof *head);
    head->number = trainer->checkpoint.agreed;
    head->batch = trainer->drawn;
    head->batches_of_all = mpidata_budget_batches_of_all_locked(trainer);
    head->count[MPIDATA_PLACE_BUFFER] = buffer->count;
    head->count[MPIDATA_PLACE_WAITING] = trainer->n_arrived;
    head->count[MPIDATA_PLACE_RETIRED] = trainer->n_retired;
    head->count[MPIDATA_PLACE_VALIDATION] = trainer->n_validation;
    head->unseen = buffer->unseen;
    head->next_retired = trainer->next_retired;
    head->capacity = buffer->capacity;
    head->added = buffer->added;
    memcpy(head->random, buffer->random.state, sizeof head->random);
    head->ledger_words = mpidata_ledger_words(&trainer->ledger);
    head->statistics = mpidata_trainer_statistics_now_locked(trainer);
}

static void *array(int64_t n, size_t size) { return malloc((size_t)(n > 0 ? n : 1) * size); }

static int allocate(mpidata_pinned *pinned, int64_t n_moments) {
    int64_t n = pinned->n, simulations = pinned->simulations;
    pinned->numbers = array(n, sizeof *pinned->numbers);
    pinned->slots = array(n, sizeof *pinned->slots);
    pinned->steps = array(simulations, sizeof *pinned->steps);
    pinned->whole = array(simulations, sizeof *pinned->whole);
    pinned->words = array(simulations, sizeof *pinned->words);
    pinned->complete = array(simulations, sizeof *pinned->complete);
    pinned->bits = array(pinned->head.ledger_words, sizeof *pinned->bits);
    pinned->moments = array(n_moments, sizeof *pinned->moments);
    return pinned->numbers && pinned->slots && pinned->steps && pinned->whole && pinned->words && pinned->complete &&
           pinned->bits && pinned->moments;
}

/* Numbers of the samples in all places. */
static void list_samples_locked(const mpidata_trainer *trainer, int64_t *numbers) {
    MPIDATA_LOCKED(&trainer->lock);
    int64_t n = 0;
    for (int64_t i = 0; i < trainer->buffer.count; i++) numbers[n++] = mpidata_buffer_at(&trainer->buffer, i);
    for (int64_t i = 0; i < trainer->n_arrived; i++) numbers[n++] = trainer->arrived[i];
    for (int64_t i = 0; i < trainer->n_retired; i++) numbers[n++] = trainer->retired[i];
    for (int64_t i = 0; i < trainer->n_validation; i++) numbers[n++] = trainer->validation[i];
}

static void pin_samples_locked(mpidata_trainer *trainer, mpidata_pinned *pinned) {
    MPIDATA_LOCKED(&trainer->lock);
    int64_t *numbers = pinned->numbers, n = pinned->n, pinnable = n - trainer->n_validation;
    list_samples_locked(trainer, numbers);
    for (int64_t i = 0; i < n; i++) {
        mpidata_slot *slot = trainer->slots.slots[numbers[i]];
        pinned->slots[i] = slot;
        if (i < pinnable)
            slot->pins++;
        else
            numbers[i] = -1; /* validation samples stay anyway */
    }
}

/* Pin the steps of all windows, each once. Returns 0 if memory is exhausted. */
static int pin_windows_locked(mpidata_trainer *trainer, mpidata_pinned *pinned, int64_t samples) {
    MPIDATA_LOCKED(&trainer->lock);
    int length = trainer->job.plan.samples_window;
    int64_t *numbers = array(samples, sizeof *numbers);
    int64_t *rows = array(trainer->slots.n_slots, sizeof *rows); /* of each slot, its step in the snapshot */
    pinned->windows = array(samples * length, sizeof *pinned->windows);
    pinned->n = 0;
    if (numbers && rows && pinned->windows) {
        list_samples_locked(trainer, numbers);
        for (int64_t i = 0; i < trainer->slots.n_slots; i++) rows[i] = -1;
        for (int64_t i = 0; i < samples * length; i++) {
            int64_t slot = mpidata_windows_steps(&trainer->windows, numbers[i / length])[i % length];
            if (rows[slot] < 0) {
                rows[slot] = pinned->n;
                pinned->numbers[pinned->n] = slot;
                pinned->slots[pinned->n] = trainer->slots.slots[slot];
                pinned->slots[pinned->n++]->pins++;
            }
            pinned->windows[i] = rows[slot];
        }
    }
    int done = numbers && rows && pinned->windows;
    free(numbers);
    free(rows);
    return done;
}

static mpidata_pinned *pin_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_pinned *pinned = calloc(1, sizeof *pinned);
    if (!pinned) return NULL;
    fill_head_locked(trainer, &pinned->head);
    int64_t samples = 0;
    for (int place = 0; place < MPIDATA_PLACES; place++) samples += pinned->head.count[place];
    pinned->n = samples * trainer->job.plan.samples_window; /* at most */
    pinned->simulations = trainer->job.plan.simulations + trainer->job.plan.validation;
    size_t n_moments = (size_t)trainer->job.plan.n_moments;
    if (!allocate(pinned, trainer->job.plan.n_moments) || (trainer->windows.plan && !pin_windows_locked(trainer, pinned, samples))) {
        mpidata_pinned_free(pinned);
        return NULL;
    }
    if (!trainer->windows.plan) pin_samples_locked(trainer, pinned);
    pinned->head.steps = pinned->n;
    if (n_moments) memcpy(pinned->moments, trainer->scales.own, n_moments * sizeof *pinned->moments);
    mpidata_ledger_export(&trainer->ledger, pinned->steps, pinned->whole, pinned->complete, pinned->words, pinned->bits);
    return pinned;
}

int mpidata_trainer_snapshot_take(mpidata_snapshot *snapshot) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    int status = MPIDATA_SUCCESS;
    mpidata_lock_take(&trainer->lock);
    if (!trainer->checkpoint.due || trainer->checkpoint.at != trainer->drawn || trainer->checkpoint.pinned) {
        status = mpidata_error(MPIDATA_ERR_ORDER, "No snapshot is due, or one is being written.");
    } else if (!(trainer->checkpoint.pinned = pin_locked(trainer))) {
        status = mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the list of samples of a checkpoint.");
    } else {
        trainer->checkpoint.due = 0;
        *snapshot = trainer->checkpoint.pinned->head;
    }
    mpidata_lock_give(&trainer->lock);
    return status;
}

int mpidata_trainer_snapshot_samples(double *parameters, double *time, int64_t *step, int64_t *simulation) {
    mpidata_trainer *trainer;
    mpidata_pinned *pinned;
    MPIDATA_TRY(need_pinned(&trainer, &pinned));
    size_t n_parameters = (size_t)trainer->job.plan.n_parameters;
    for (int64_t i = 0; i < pinned->n; i++) {
        const mpidata_slot *slot = pinned->slots[i];
        if (n_parameters)
            memcpy(parameters + (size_t)i * n_parameters, slot->parameters, n_parameters * sizeof *parameters);
        time[i] = *slot->time;
        step[i] = *slot->step;
        simulation[i] = *slot->simulation;
    }
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_snapshot_numbers(int64_t *numbers) {
    mpidata_trainer *trainer;
    mpidata_pinned *pinned;
    MPIDATA_TRY(need_pinned(&trainer, &pinned));
    const int n = trainer->job.plan.n_numbers;
    for (int64_t i = 0; i < pinned->n && n; i++, numbers += n)
        memcpy(numbers, pinned->slots[i]->parts.numbers, (size_t)n * sizeof *numbers);
    return MPIDATA_SUCCESS;
}

/* In the order of the steps. */
int mpidata_trainer_snapshot_constants(mpidata_try_constants **constants, int64_t *n, int64_t *of) {
    mpidata_trainer *trainer;
    mpidata_pinned *pinned;
    MPIDATA_TRY(need_pinned(&trainer, &pinned));
    *n = 0;
    mpidata_lock_take(&trainer->lock);
    for (int64_t i = 0; i < pinned->n; i++)
        if (pinned->slots[i]->constants) pinned->slots[i]->constants->row = -1;
    for (int64_t i = 0; i < pinned->n; i++) {
        mpidata_try_constants *its = pinned->slots[i]->constants;
        of[i] = its ? its->row : -1;
        if (!its || its->row >= 0) continue;
        of[i] = its->row = *n;
        constants[(*n)++] = mpidata_constants_keep(its);
    }
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_snapshot_windows(int64_t *steps) {
    mpidata_trainer *trainer;
    mpidata_pinned *pinned;
    MPIDATA_TRY(need_pinned(&trainer, &pinned));
    if (!pinned->windows) return mpidata_error(MPIDATA_ERR_ORDER, "Samples of one step have no windows.");
    int64_t samples = 0;
    for (int place = 0; place < MPIDATA_PLACES; place++) samples += pinned->head.count[place];
    memcpy(steps, pinned->windows, (size_t)(samples * trainer->job.plan.samples_window) * sizeof *steps);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_snapshot_ledger(int64_t *steps, int64_t *whole, uint8_t *complete, int64_t *words, uint64_t *bits) {
    mpidata_trainer *trainer;
    mpidata_pinned *pinned;
    MPIDATA_TRY(need_pinned(&trainer, &pinned));
    size_t n = (size_t)pinned->simulations;
    memcpy(steps, pinned->steps, n * sizeof *steps);
    memcpy(whole, pinned->whole, n * sizeof *whole);
    memcpy(complete, pinned->complete, n * sizeof *complete);
    memcpy(words, pinned->words, n * sizeof *words);
    if (pinned->head.ledger_words) memcpy(bits, pinned->bits, (size_t)pinned->head.ledger_words * sizeof *bits);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_snapshot_scales(double *moments) {
    mpidata_trainer *trainer;
    mpidata_pinned *pinned;
    MPIDATA_TRY(need_pinned(&trainer, &pinned));
    size_t n = (size_t)trainer->job.plan.n_moments;
    if (n) memcpy(moments, pinned->moments, n * sizeof *pinned->moments);
    return MPIDATA_SUCCESS;
}

/* -- writing -------------------------------------------------------------------------------------------------------- */

static int check_range(const mpidata_pinned *pinned, int64_t first, int64_t count) {
    if (first >= 0 && count >= 0 && first <= pinned->n && count <= pinned->n - first) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ARGUMENT, "The snapshot has %lld steps, not %lld from %lld on.",
                         (long long)pinned->n, (long long)count, (long long)first);
}

int mpidata_trainer_snapshot_write(int file, int field, int64_t first, int64_t count, int64_t offset) {
    mpidata_trainer *trainer;
    mpidata_pinned *pinned;
    MPIDATA_TRY(need_pinned(&trainer, &pinned));
    MPIDATA_TRY(check_range(pinned, first, count));
    if (field < 0 || field >= trainer->job.plan.n_fields)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "There is no field %d.", field);
    int failed = mpidata_write_field(&trainer->slots, file, field, pinned->slots + first, count, offset);
    return failed ? mpidata_error(MPIDATA_ERR_ARGUMENT, "%s", strerror(failed)) : MPIDATA_SUCCESS;
}

static void release_locked(mpidata_trainer *trainer, mpidata_pinned *pinned, int64_t first, int64_t count) {
    MPIDATA_LOCKED(&trainer->lock);
    for (int64_t i = first; i < first + count; i++) {
        if (pinned->numbers[i] >= 0) mpidata_slots_unpin(&trainer->slots, pinned->numbers[i]);
        pinned->numbers[i] = -1;
    }
}

int mpidata_trainer_snapshot_release(int64_t first, int64_t count) {
    mpidata_trainer *trainer;
    mpidata_pinned *pinned;
    MPIDATA_TRY(need_pinned(&trainer, &pinned));
    MPIDATA_TRY(check_range(pinned, first, count));
    mpidata_lock_take(&trainer->lock);
    release_locked(trainer, pinned, first, count);
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_snapshot_end(int failed, int64_t bytes, const char *text) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    mpidata_pinned *pinned = trainer->checkpoint.pinned;
    int status = MPIDATA_SUCCESS;
    if (pinned || trainer->checkpoint.due) {
        if (pinned) release_locked(trainer, pinned, 0, pinned->n);
        trainer->checkpoint.pinned = NULL;
        trainer->checkpoint.due = 0;
        status = mpidata_checkpoint_answer_locked(trainer, failed, bytes, text);
    }
    mpidata_lock_give(&trainer->lock);
    mpidata_pinned_free(pinned);
    return status;
}

/* -- restoring ------------------------------------------------------------------------------------------------------ */

static int need_unbegun(mpidata_trainer **trainer) {
    MPIDATA_TRY(mpidata_the_trainer(trainer));
    if (!(*trainer)->begun) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ORDER, "A checkpoint must be restored before mpidata_trainer_begin.");
}

int mpidata_trainer_restore(const mpidata_snapshot *state, uint64_t stream) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(need_unbegun(&trainer));
    mpidata_buffer *buffer = &trainer->buffer;
    if (state->batch < 0 || state->batch > INT64_MAX / 4 || state->batches_of_all < 0 || state->unseen < 0 || state->next_retired < 0 ||
        state->added < 0 || state->added > INT64_MAX / 4 || state->capacity < buffer->capacity)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "The checkpoint's numbers make no sense.");
    if (mpidata_buffer_grow(buffer, state->capacity))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a buffer of %lld samples. Lower buffer.capacity.",
                             (long long)state->capacity);
    trainer->drawn = trainer->granted = trainer->budget.base = state->batch;
    trainer->budget.base_by_all = state->batches_of_all;
    trainer->next_retired = state->next_retired;
    trainer->statistics = state->statistics;
    buffer->unseen = state->unseen;
    buffer->added = state->added;
    if (stream)
        mpidata_random_seed(&buffer->random, trainer->job.plan.seed, stream);
    else
        memcpy(buffer->random.state, state->random, sizeof buffer->random.state);
    return MPIDATA_SUCCESS;
}

static int check_numbers(const mpidata_plan *plan, const int64_t *numbers) {
    for (int l = 0; l < plan->n_lengths; l++)
        if (numbers[l] < -1 || numbers[l] > INT_MAX)
            return mpidata_error(MPIDATA_ERR_ARGUMENT, "The checkpoint has constants with the length %lld.", (long long)numbers[l]);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_restore_constants(int64_t simulation, int64_t by_try, const void *const *fields, const int64_t *numbers,
                                      mpidata_try_constants **constants) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(need_unbegun(&trainer));
    mpidata_constants_set *set = &trainer->slots.constants;
    if (!mpidata_plan_has(&trainer->job.plan, simulation))
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "The checkpoint has constants of simulation %lld.", (long long)simulation);
    MPIDATA_TRY(check_numbers(&trainer->job.plan, numbers));
    mpidata_lock_take(&trainer->lock);
    *constants = mpidata_constants_new(set, -1, by_try, simulation);
    int status = *constants ? mpidata_constants_fill(set, *constants, fields, numbers)
                            : mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the constants of a checkpoint.");
    if (status) mpidata_constants_release(set, *constants);
    mpidata_lock_give(&trainer->lock);
    return status;
}

static int put_into_place(mpidata_trainer *trainer, int place, int64_t slot) {
    if (place == MPIDATA_PLACE_BUFFER || place == MPIDATA_PLACE_WAITING) {
        mpidata_lock_take(&trainer->lock);
        mpidata_trainer_count_draws_locked(trainer, slot);
        const int status = mpidata_trainer_check_size_locked(trainer, slot);
        mpidata_lock_give(&trainer->lock);
        MPIDATA_TRY(status);
    }
    switch (place) {
    case MPIDATA_PLACE_BUFFER:
        if (mpidata_buffer_reserve(&trainer->buffer))
            return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a list of samples.");
        if (trainer->buffer.memory || trainer->buffer.count < trainer->buffer.capacity) {
            mpidata_buffer_put_back(&trainer->buffer, slot);
            return MPIDATA_SUCCESS;
        }
        break;
    case MPIDATA_PLACE_WAITING:
        return mpidata_slots_append(&trainer->arrived, &trainer->n_arrived, &trainer->arrived_allocated, slot);
    case MPIDATA_PLACE_RETIRED:
        return mpidata_slots_append(&trainer->retired, &trainer->n_retired, &trainer->retired_allocated, slot);
    case MPIDATA_PLACE_VALIDATION:
        return mpidata_slots_append(&trainer->validation, &trainer->n_validation, &trainer->validation_allocated, slot);
    default: break;
    }
    return mpidata_error(MPIDATA_ERR_ARGUMENT, "There is no room for a sample of the checkpoint in place %d.", place);
}

/* A sample for training may have come to any trainer, whose ledger has it. */
static int check_step(const mpidata_trainer *trainer, int anybodys, int64_t simulation, int64_t step) {
    const mpidata_plan *plan = &trainer->job.plan;
    if (simulation >= 0 && simulation < plan->simulations + plan->validation && step >= 0 &&
        step < MPIDATA_STEPS_MAX &&
        (anybodys || mpidata_plan_trainer(plan, simulation, step) == trainer->job.index))
        return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ARGUMENT, "Step %lld of simulation %lld does not belong to this trainer.",
                         (long long)step, (long long)simulation);
}

typedef struct {
    const char **fields; /* where the next sample's values are */
    const double *parameters, *time;
    const int64_t *step, *simulation, *numbers;
    mpidata_try_constants *const *constants;
} restored_samples;

/* Advance to those of the next sample. */
static int restore_fields(mpidata_trainer *trainer, mpidata_slot *slot, const int64_t *numbers, const char **fields) {
    const mpidata_plan *plan = &trainer->job.plan;
    for (int f = 0; f < plan->n_fields; f++) {
        const mpidata_field *field = &plan->fields[f];
        if (field->per_simulation) continue;
        const int64_t extent = field->varying < 0 ? 1 : numbers[field->length];
        if (extent < 0 || extent > INT_MAX / field->row)
            return mpidata_error(MPIDATA_ERR_ARGUMENT, "The checkpoint has a sample with the length %lld.", (long long)extent);
        const size_t bytes = (size_t)(extent * field->row) * field->element_size;
        if (field->varying < 0)
            memcpy(mpidata_slot_field(&trainer->slots, slot, f), fields[f], bytes);
        else
            MPIDATA_TRY(mpidata_parts_fill(&slot->parts, &trainer->slots.heap, plan, f, extent, fields[f]));
        fields[f] += bytes;
    }
    return plan->n_numbers ? mpidata_parts_join_known(&slot->parts, plan, numbers) : MPIDATA_SUCCESS;
}

static int restore_sample(mpidata_trainer *trainer, int place, int64_t i, const restored_samples *from) {
    const mpidata_plan *plan = &trainer->job.plan;
    int64_t number = mpidata_slots_take(&trainer->slots, -1);
    if (number < 0)
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a sample of %zu bytes. Lower buffer.capacity.",
                             plan->slot_bytes);
    mpidata_slot *slot = trainer->slots.slots[number];
    if (plan->n_constants) mpidata_slot_set_constants(slot, from->constants[i]);
    MPIDATA_TRY(restore_fields(trainer, slot, from->numbers ? from->numbers + i * plan->n_numbers : NULL, from->fields));
    size_t n = (size_t)plan->n_parameters;
    if (n) memcpy(slot->parameters, from->parameters + (size_t)i * n, n * sizeof *slot->parameters);
    *slot->time = from->time[i];
    *slot->step = from->step[i];
    *slot->simulation = from->simulation[i];
    slot->draws = -1;
    if (place != MPIDATA_PLACE_NONE) return put_into_place(trainer, place, number);
    slot->holders = 1;
    return mpidata_slots_append(&trainer->restored, &trainer->n_restored, &trainer->restored_allocated, number);
}

int mpidata_trainer_restore_samples(int place, int64_t count, const void *const *fields, const double *parameters,
                                    const double *time, const int64_t *step, const int64_t *simulation, const int64_t *numbers,
                                    mpidata_try_constants *const *constants) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(need_unbegun(&trainer));
    const mpidata_plan *plan = &trainer->job.plan;
    if ((place == MPIDATA_PLACE_NONE) != (trainer->windows.plan != NULL) || (plan->n_numbers && count && !numbers) ||
        (plan->n_constants && count && !constants))
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "The checkpoint's samples do not match the job's.");
    const char **next = array(plan->n_fields, sizeof *next);
    if (!next) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the samples of a checkpoint.");
    const restored_samples from = {next, parameters, time, step, simulation, numbers, constants};
    int status = MPIDATA_SUCCESS;
    for (int f = 0; f < plan->n_fields; f++) next[f] = fields[f];
    for (int64_t i = 0; i < count && !status; i++) {
        if (constants && (!constants[i] || constants[i]->simulation != simulation[i]))
            status = mpidata_error(MPIDATA_ERR_ARGUMENT, "The checkpoint has a sample of simulation %lld without its constants.",
                                   (long long)simulation[i]);
        else if (place != MPIDATA_PLACE_NONE) status = check_step(trainer, place != MPIDATA_PLACE_VALIDATION, simulation[i], step[i]);
        if (!status) status = restore_sample(trainer, place, i, &from);
    }
    free(next);
    return status;
}

static int restore_window(mpidata_trainer *trainer, int place, const int64_t *steps, int64_t *slots) {
    const mpidata_plan *plan = &trainer->job.plan;
    int64_t number, first = 0, simulation = 0;
    for (int i = 0; i < plan->samples_window; i++) {
        if (steps[i] < 0 || steps[i] >= trainer->n_restored)
            return mpidata_error(MPIDATA_ERR_ARGUMENT, "A window of the checkpoint has no step %lld.", (long long)steps[i]);
        slots[i] = trainer->restored[steps[i]];
        const mpidata_slot *slot = trainer->slots.slots[slots[i]];
        if (!i) first = *slot->step;
        if (!i) simulation = *slot->simulation;
        if (*slot->simulation != simulation || *slot->step != first + i * (int64_t)plan->samples_stride)
            return mpidata_error(MPIDATA_ERR_ARGUMENT, "The steps of a window of the checkpoint do not belong together.");
    }
    MPIDATA_TRY(check_step(trainer, place != MPIDATA_PLACE_VALIDATION, simulation, first));
    MPIDATA_TRY(mpidata_windows_make(&trainer->windows, slots, &number));
    return put_into_place(trainer, place, number);
}

int mpidata_trainer_restore_windows(int place, int64_t count, const int64_t *steps) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(need_unbegun(&trainer));
    int64_t length = trainer->job.plan.samples_window, *slots = malloc((size_t)length * sizeof *slots);
    int status = slots ? MPIDATA_SUCCESS : mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for windows of steps.");
    if (!trainer->windows.plan) status = mpidata_error(MPIDATA_ERR_ARGUMENT, "Samples of one step have no windows.");
    for (int64_t i = 0; i < count && !status; i++) status = restore_window(trainer, place, steps + i * length, slots);
    free(slots);
    return status;
}

int mpidata_trainer_restore_ledger(const int64_t *steps) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(need_unbegun(&trainer));
    const mpidata_plan *plan = &trainer->job.plan;
    for (int64_t i = 0; i < plan->simulations + plan->validation; i++)
        if (steps[i] > MPIDATA_STEPS_MAX)
            return mpidata_error(MPIDATA_ERR_ARGUMENT, "The checkpoint says that simulation %lld has %lld steps.",
                                 (long long)i, (long long)steps[i]);
    mpidata_ledger_import(&trainer->ledger, steps);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_restore_received(int64_t count, const int64_t *simulation, const int64_t *step) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(need_unbegun(&trainer));
    for (int64_t i = 0; i < count; i++) {
        MPIDATA_TRY(check_step(trainer, trainer->job.plan.trainers_at_least > 0, simulation[i], step[i]));
        if (!mpidata_ledger_has(&trainer->ledger, simulation[i], step[i]))
            MPIDATA_TRY(mpidata_ledger_enter(&trainer->ledger, simulation[i], step[i]));
    }
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_restore_elsewhere(int64_t count, const int64_t *simulation, const int64_t *step) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(need_unbegun(&trainer));
    for (int64_t i = 0; i < count; i++) {
        MPIDATA_TRY(check_step(trainer, 1, simulation[i], step[i]));
        MPIDATA_TRY(mpidata_ledger_leave_out(&trainer->ledger, simulation[i], step[i]));
    }
    return MPIDATA_SUCCESS;
}
