#include "stream/budget.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* repeats x received; slightly more, so that 1.15 x 100 is 115. */
static double draws(const mpidata_trainer *trainer, int64_t received) {
    return trainer->job.plan.repeats * (double)received * (1 + 1e-12);
}

/* The number of parts: batches count for each trainer, or once if all draw them together. */
static int64_t parts_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    return trainer->shares.total ? 1 : mpidata_plan_training(&trainer->job.plan);
}

static double samples_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    return (double)(trainer->shares.total ? trainer->shares.total : trainer->batch);
}

/* Batches of trainers that have left. Batches that all draw together are already counted by the others. */
static int64_t of_those_gone_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    int64_t draws = 0;
    for (int t = 0; t < trainer->job.plan.trainers && trainer->budget.draws && !trainer->shares.total; t++)
        if (!mpidata_plan_trains(&trainer->job.plan, t)) draws += trainer->budget.draws[t];
    return trainer->batch ? draws / trainer->batch : 0;
}

static int64_t before_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    return trainer->budget.base_by_all + of_those_gone_locked(trainer);
}

int64_t mpidata_budget_received_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    return trainer->statistics.received + trainer->budget.inherited;
}

int mpidata_budget_inherit_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_plan *plan = &trainer->job.plan;
    if (plan->repeats <= 0 || !plan->trainers_at_least) return MPIDATA_SUCCESS;
    if (!trainer->budget.draws && !(trainer->budget.draws = calloc((size_t)plan->trainers, sizeof *trainer->budget.draws)))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the trainer.");
    trainer->budget.inherited = mpidata_ledger_count(&trainer->ledger, trainer->job.index) - trainer->statistics.received;
    return MPIDATA_SUCCESS;
}

int64_t mpidata_budget_trained_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_budget *budget = &trainer->budget;
    int64_t draws = 0;
    if (trainer->shares.total) return budget->base_by_all + trainer->drawn - budget->base;
    for (int t = 0; t < trainer->job.plan.trainers && budget->draws; t++) draws += budget->draws[t];
    return budget->base_by_all + (trainer->batch ? draws / trainer->batch : 0);
}

void mpidata_budget_begin_anew_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_budget *budget = &trainer->budget;
    if (!budget->draws) return;
    budget->base_by_all = mpidata_budget_trained_locked(trainer);
    budget->base = trainer->drawn;
    memset(budget->draws, 0, (size_t)trainer->job.plan.trainers * sizeof *budget->draws);
}

int64_t mpidata_budget_limit_locked(const mpidata_trainer *trainer, int64_t received) {
    MPIDATA_LOCKED(&trainer->lock);
    double left = floor(draws(trainer, received)) - (double)before_locked(trainer) * samples_locked(trainer);
    double all = (double)parts_locked(trainer) * samples_locked(trainer);
    return left > 0 ? trainer->budget.base + (int64_t)floor(left / all) : trainer->budget.base;
}

int mpidata_budget_allows_locked(const mpidata_trainer *trainer, int ended) {
    MPIDATA_LOCKED(&trainer->lock);
    if (trainer->drawn < mpidata_budget_limit_locked(trainer, mpidata_budget_received_locked(trainer))) return 1;
    return !ended && mpidata_buffer_full(&trainer->buffer);
}

int64_t mpidata_budget_batches_of_all_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    return before_locked(trainer) + (trainer->drawn - trainer->budget.base) * parts_locked(trainer);
}

int mpidata_budget_behind_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_budget *budget = &trainer->budget;
    const mpidata_plan *plan = &trainer->job.plan;
    if (plan->repeats <= 0 || !trainer->batch) return 0; /* a buffer that nobody draws from is soon full */
    if (trainer->adoption.rests) return 0; /* it draws nothing more, and solvers must not wait for it */
    if (!trainer->validation_whole) return 0; /* the script may draw only once these samples have come, after others */
    if (plan->capacity_in_bytes && !mpidata_buffer_crowded(&trainer->buffer)) return 0; /* there may be no batch yet */
    int64_t received = budget->received + mpidata_budget_received_locked(trainer) - budget->said;
    double drawn = (double)mpidata_budget_batches_of_all_locked(trainer) * samples_locked(trainer);
    const int64_t capacity = plan->capacity_in_bytes ? mpidata_buffer_fits(&trainer->buffer) : plan->capacity;
    return draws(trainer, received) - drawn > plan->repeats * (double)capacity * mpidata_plan_training(&trainer->job.plan);
}

int mpidata_budget_stuck_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    return mpidata_buffer_full(&trainer->buffer) && trainer->granted <= trainer->drawn;
}

int mpidata_budget_end_locked(mpidata_trainer *trainer, int64_t received) {
    MPIDATA_LOCKED(&trainer->lock);
    int64_t excess = trainer->granted - mpidata_budget_limit_locked(trainer, received);
    if (excess <= 0 || trainer->budget.excess == excess) return MPIDATA_SUCCESS;
    trainer->budget.excess = excess;
    return mpidata_trainer_post_report_locked(trainer, "budget.excess", (double)excess);
}
