#include "trainer/feed.h"

#include <stdlib.h>
#include <string.h>

#include "program/caller.h"
#include "receive/completion.h"
#include "stream/budget.h"
#include "stream/progress.h"

static int open_alone(mpidata_trainer *trainer, const char *plan_text) {
    MPIDATA_TRY(mpidata_plan_parse(plan_text, &trainer->job.plan));
    if (trainer->job.plan.trainers != 1)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "A trainer without a job must be the only one; the plan has %d.",
                             trainer->job.plan.trainers);
    trainer->job.kind = MPIDATA_ROLE_TRAINER;
    MPIDATA_TRY(mpidata_trainer_open_memory(trainer));
    trainer->validation_whole = trainer->job.plan.validation == 0;
    trainer->begun = 1;
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_open_alone(const char *plan_text) {
    mpidata_trainer *trainer;
    if (!mpidata_the_trainer(&trainer))
        return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_trainer_open_alone: this process is a trainer already.");
    trainer = calloc(1, sizeof *trainer);
    if (!trainer) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the trainer.");
    MPIDATA_TRY(open_alone(trainer, plan_text)); /* on an error the process ends: nothing is freed */
    mpidata_trainer_set(trainer);
    return MPIDATA_SUCCESS;
}

static int check_sample(const mpidata_plan *plan, int64_t simulation, int64_t step) {
    if (mpidata_plan_has(plan, simulation) && step >= 0 && step < MPIDATA_STEPS_MAX) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ARGUMENT, "The plan has no step %lld of simulation %lld.", (long long)step,
                         (long long)simulation);
}

static int fill_slot_locked(mpidata_trainer *trainer, int64_t ahead, int64_t simulation, int64_t by_try,
                            const void *const *fields, const int64_t *numbers, const double *parameters, int64_t *number) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_plan *plan = &trainer->job.plan;
    *number = mpidata_slots_take(&trainer->slots, ahead);
    if (*number < 0)
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a sample of %zu bytes. Lower buffer.capacity.",
                             plan->slot_bytes);
    mpidata_slot *slot = trainer->slots.slots[*number];
    if (plan->n_constants)
        MPIDATA_TRY(mpidata_slot_fill_constants(&trainer->slots, slot, fields, numbers, 0, by_try, simulation));
    for (int f = 0; f < plan->n_fields; f++) {
        const mpidata_field *field = &plan->fields[f];
        int64_t shape[MPIDATA_MAX_NDIM];
        if (field->per_simulation || !plan->n_moments || field->channel_axis == MPIDATA_NO_STATISTICS) continue;
        memcpy(shape, field->shape, sizeof shape);
        if (field->varying >= 0) shape[field->varying] = numbers[field->length];
        if (field->varying < 0 || numbers[field->length])
            mpidata_moments_of_block(field, shape, fields[f], slot->moments + field->moments);
    }
    if (plan->n_parameters) memcpy(slot->parameters, parameters, (size_t)plan->n_parameters * sizeof *parameters);
    return mpidata_slot_fill(&trainer->slots, slot, fields, numbers);
}

/* Windows may wait for more room than there is. */
static int has_room_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    int64_t n = 0;
    (void)mpidata_trainer_fill_buffer_locked(trainer, &n);
    if (n) mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
    return !trainer->n_arrived && !mpidata_buffer_full(&trainer->buffer);
}

static int wait_for_room_locked(mpidata_trainer *trainer, double deadline) {
    MPIDATA_LOCKED(&trainer->lock);
    while (!has_room_locked(trainer) || mpidata_budget_behind_locked(trainer)) {
        if (mpidata_draws_ended(&trainer->phase)) return MPIDATA_END;
        if (!mpidata_lock_sleep_locked(&trainer->lock, &trainer->wake, deadline))
            return mpidata_error(MPIDATA_ERR_AGAIN, "The buffer is full.");
    }
    return mpidata_draws_ended(&trainer->phase) ? MPIDATA_END : MPIDATA_SUCCESS;
}

int mpidata_trainer_give(const void *const *fields, const int64_t *numbers, const double *parameters, double time, int64_t step, int64_t simulation,
                         int64_t by_try, double timeout_s) {
    MPIDATA_CALLED;
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    const mpidata_plan *plan = &trainer->job.plan;
    MPIDATA_TRY(check_sample(plan, simulation, step));
    int validation = simulation >= plan->simulations;
    int64_t number = -1;
    mpidata_lock_take(&trainer->lock);
    int status = validation ? MPIDATA_SUCCESS : wait_for_room_locked(trainer, mpidata_trainer_deadline(timeout_s));
    const int cancelled = trainer->ledger.entries[simulation].cancelled;
    if (!status && !cancelled && !mpidata_trainer_has_step_locked(trainer, simulation, step)) {
        status = fill_slot_locked(trainer, validation ? -1 : trainer->buffer.count, simulation, by_try, fields, numbers, parameters, &number);
        if (!status) {
            mpidata_slot *slot = trainer->slots.slots[number];
            *slot->time = time;
            *slot->step = step;
            *slot->simulation = simulation;
            int64_t n;
            status = mpidata_enter_step_locked(trainer, 0, 1, number, validation);
            if (!status) status = mpidata_trainer_fill_buffer_locked(trainer, &n);
            trainer->statistics.bytes += (int64_t)mpidata_slot_bytes(&trainer->slots, slot);
        }
    }
    mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
    mpidata_lock_give(&trainer->lock);
    return status;
}

int mpidata_trainer_gave_all(int64_t simulation, int64_t steps) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    MPIDATA_TRY(check_sample(&trainer->job.plan, simulation, steps));
    mpidata_lock_take(&trainer->lock);
    mpidata_ledger_expect(&trainer->ledger, simulation, steps);
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_gave_validation(void) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    trainer->validation_whole = 1;
    mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_end_alone(void) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    if (trainer->windows.plan) mpidata_windows_drop_all(&trainer->windows);
    while (!has_room_locked(trainer) && trainer->n_arrived && !mpidata_draws_ended(&trainer->phase))
        (void)mpidata_lock_sleep_locked(&trainer->lock, &trainer->wake, mpidata_trainer_deadline(1.0));
    mpidata_buffer_end(&trainer->buffer);
    if (!trainer->validation_whole) mpidata_phase_stop_locked(&trainer->phase);
    mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}
