#include "stream/deaths/joining.h"

#include <stdlib.h>
#include <string.h>

#include "stream/budget.h"
#include "stream/progress.h"

/* A window is identified by its first step. */
static const mpidata_slot *slot_of_locked(const mpidata_trainer *trainer, int64_t number) {
    MPIDATA_LOCKED(&trainer->lock);
    return trainer->slots.slots[*mpidata_trainer_steps_of_locked(trainer, &number)];
}

/* In the buffer's order those never drawn come first. */
static int64_t undrawn_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    return trainer->buffer.policy == MPIDATA_POLICY_RESERVOIR ? trainer->buffer.unseen : trainer->buffer.count;
}

static int leave_out(mpidata_ledger *ledger, const mpidata_slot *slot) {
    return mpidata_ledger_leave_out(ledger, *slot->simulation, *slot->step);
}

static int leave_out_undrawn_locked(const mpidata_trainer *trainer, mpidata_ledger *ledger) {
    MPIDATA_LOCKED(&trainer->lock);
    for (int64_t i = 0; i < undrawn_locked(trainer); i++)
        MPIDATA_TRY(leave_out(ledger, slot_of_locked(trainer, mpidata_buffer_at(&trainer->buffer, i))));
    for (int64_t i = 0; i < trainer->n_arrived; i++) MPIDATA_TRY(leave_out(ledger, slot_of_locked(trainer, trainer->arrived[i])));
    return MPIDATA_SUCCESS;
}

/* Samples of simulations for validation were not trained on. */
static int write_down(const mpidata_ledger *ledger, int64_t draws, int64_t **numbers, int64_t *n) {
    const int64_t simulations = ledger->plan->simulations + ledger->plan->validation;
    *n = 1 + 3 * simulations + mpidata_ledger_words(ledger);
    int64_t *at = *numbers = malloc((size_t)*n * sizeof **numbers);
    if (!at) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a trainer that takes a place.");
    *at++ = draws;
    for (int64_t i = 0; i < simulations; i++) {
        const mpidata_ledger_entry *entry = &ledger->entries[i];
        const int trained = i < ledger->plan->simulations;
        *at++ = entry->steps;
        *at++ = trained ? entry->whole : 0;
        *at++ = trained ? entry->words : 0;
        if (trained && entry->words) memcpy(at, entry->bits, (size_t)entry->words * sizeof *at);
        at += trained ? entry->words : 0;
    }
    *n = at - *numbers;
    return MPIDATA_SUCCESS;
}

int mpidata_pack_trained_locked(const mpidata_trainer *trainer, int64_t **numbers, int64_t *n) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_adoption *adoption = &trainer->adoption;
    mpidata_ledger ledger;
    int status = mpidata_ledger_copy(&ledger, &trainer->ledger);
    for (int64_t i = 0; i < adoption->n_trained && !status; i += 2)
        status = mpidata_ledger_enter(&ledger, adoption->trained[i], adoption->trained[i + 1]);
    if (!status) status = leave_out_undrawn_locked(trainer, &ledger);
    if (!status) status = write_down(&ledger, mpidata_budget_trained_locked(trainer), numbers, n);
    mpidata_ledger_close(&ledger);
    return status;
}

int mpidata_take_trained_locked(mpidata_trainer *trainer, const int64_t *numbers, int64_t n) {
    MPIDATA_LOCKED(&trainer->lock);
    const int64_t simulations = trainer->job.plan.simulations + trainer->job.plan.validation, *end = numbers + n;
    if (n > 0) trainer->budget.base_by_all = *numbers++;
    for (int64_t i = 0; i < simulations; i++) {
        const int64_t words = end - numbers >= 3 ? numbers[2] : -1;
        if (words < 0 || words > end - numbers - 3)
            return mpidata_error(MPIDATA_ERR_WIRE, "Another trainer has sent a ledger that ends too soon.");
        MPIDATA_TRY(mpidata_ledger_learn(&trainer->ledger, i, numbers[0], numbers[1], words, (const uint64_t *)(numbers + 3)));
        numbers += 3 + words;
    }
    return MPIDATA_SUCCESS;
}

static int is_own_locked(const mpidata_trainer *trainer, int64_t number) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_slot *slot = slot_of_locked(trainer, number);
    return mpidata_plan_trainer(&trainer->job.plan, *slot->simulation, *slot->step) == trainer->job.index;
}

/* Another trainer must have it, and lacks it. */
static int drop_locked(mpidata_trainer *trainer, int64_t number) {
    MPIDATA_LOCKED(&trainer->lock);
    MPIDATA_TRY(leave_out(&trainer->ledger, slot_of_locked(trainer, number)));
    mpidata_trainer_count_no_draws_locked(trainer, number);
    mpidata_trainer_give_back_locked(trainer, number);
    return MPIDATA_SUCCESS;
}

static int drop_arrived_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    int64_t kept = 0;
    for (int64_t i = 0; i < trainer->n_arrived; i++)
        if (is_own_locked(trainer, trainer->arrived[i]))
            trainer->arrived[kept++] = trainer->arrived[i];
        else
            MPIDATA_TRY(drop_locked(trainer, trainer->arrived[i]));
    trainer->n_arrived = kept;
    return MPIDATA_SUCCESS;
}

/* A trainer that no longer trains keeps nothing, not even samples that a reservoir might draw again. */
static int drop_from_buffer_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    const int64_t count = trainer->buffer.count, undrawn = undrawn_locked(trainer);
    const int trains = mpidata_plan_trains(&trainer->job.plan, trainer->job.index);
    int64_t *numbers = calloc((size_t)count + 1, sizeof *numbers);
    char *kept = calloc((size_t)count + 1, 1);
    int status = numbers && kept ? MPIDATA_SUCCESS : mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the trainer.");
    for (int64_t i = 0; i < count && !status; i++) {
        numbers[i] = mpidata_buffer_at(&trainer->buffer, i);
        kept[i] = trains && (i >= undrawn || is_own_locked(trainer, numbers[i]));
    }
    if (!status) mpidata_buffer_keep(&trainer->buffer, kept);
    for (int64_t i = 0; i < count && !status; i++) {
        if (kept[i]) continue;
        if (i < undrawn)
            status = drop_locked(trainer, numbers[i]);
        else
            mpidata_trainer_give_back_locked(trainer, numbers[i]);
    }
    free(numbers);
    free(kept);
    return status;
}

int mpidata_drop_others_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    if (!trainer->job.plan.trainer_spares) return MPIDATA_SUCCESS; /* none joins */
    MPIDATA_TRY(drop_arrived_locked(trainer));
    return drop_from_buffer_locked(trainer);
}
