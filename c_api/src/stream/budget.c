#include "stream/budget.h"

#include <math.h>

/* repeats x received; so much more that 1.15 x 100 is 115. */
static double draws(const mpidata_trainer *trainer, int64_t received) {
    return trainer->job.plan.repeats * (double)received * (1 + 1e-12);
}

/* What is counted: batches of each trainer, or those that all draw together. */
static int64_t parts_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    return trainer->shares.total ? 1 : trainer->job.plan.trainers;
}

static double samples_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    return (double)(trainer->shares.total ? trainer->shares.total : trainer->batch);
}

int64_t mpidata_budget_limit_locked(const mpidata_trainer *trainer, int64_t received) {
    MPIDATA_LOCKED(&trainer->lock);
    double left = floor(draws(trainer, received)) - (double)trainer->budget.base_by_all * samples_locked(trainer);
    double all = (double)parts_locked(trainer) * samples_locked(trainer);
    return left > 0 ? trainer->budget.base + (int64_t)floor(left / all) : trainer->budget.base;
}

int mpidata_budget_allows_locked(const mpidata_trainer *trainer, int ended) {
    MPIDATA_LOCKED(&trainer->lock);
    if (trainer->drawn < mpidata_budget_limit_locked(trainer, trainer->statistics.received)) return 1;
    return !ended && mpidata_buffer_full(&trainer->buffer);
}

int64_t mpidata_budget_batches_of_all_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    return trainer->budget.base_by_all + (trainer->drawn - trainer->budget.base) * parts_locked(trainer);
}

int mpidata_budget_behind_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_budget *budget = &trainer->budget;
    const mpidata_plan *plan = &trainer->job.plan;
    if (plan->repeats <= 0 || !trainer->batch) return 0; /* a buffer of samples that nobody draws is full soon */
    if (plan->capacity_in_bytes && !mpidata_buffer_crowded(&trainer->buffer)) return 0; /* there may be no batch yet */
    int64_t received = budget->received + trainer->statistics.received - budget->said;
    double drawn = (double)mpidata_budget_batches_of_all_locked(trainer) * samples_locked(trainer);
    const int64_t capacity = plan->capacity_in_bytes ? mpidata_buffer_fits(&trainer->buffer) : plan->capacity;
    return draws(trainer, received) - drawn > plan->repeats * (double)capacity * plan->trainers;
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
