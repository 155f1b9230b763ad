#include "receive/completion.h"

#include "stream/progress.h"

void mpidata_drop_assembly_locked(mpidata_trainer *trainer, mpidata_assemblies *assemblies, mpidata_assembly *assembly) {
    MPIDATA_LOCKED(&trainer->lock);
    if (assembly->slot >= 0)
        mpidata_slots_give_back(&trainer->slots, assembly->slot);
    else
        mpidata_constants_release(&trainer->slots.constants, assembly->constants);
    mpidata_assembly_free(assemblies, assembly);
}

/* No window starts at the last steps of a simulation: they may come when all windows of their try are whole. */
static int is_late_locked(const mpidata_trainer *trainer, const mpidata_assembly *assembly) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_ledger_entry *entry = &trainer->ledger.entries[assembly->simulation];
    return trainer->windows.plan && entry->complete && assembly->by_try <= entry->expected_by;
}

static int64_t first_step_locked(const mpidata_trainer *trainer, int64_t number) {
    MPIDATA_LOCKED(&trainer->lock);
    return *trainer->slots.slots[mpidata_windows_steps(&trainer->windows, number)[0]]->step;
}

/* Whether the window that begins there was in the ledger before those that have just become whole, from the i-th on. */
static int was_whole_locked(const mpidata_trainer *trainer, int64_t simulation, int64_t first, int64_t i) {
    MPIDATA_LOCKED(&trainer->lock);
    if (!mpidata_ledger_has(&trainer->ledger, simulation, first)) return 0;
    for (; i < trainer->windows.n_whole; i++)
        if (first_step_locked(trainer, trainer->windows.whole[i]) == first) return 0;
    return 1;
}

/* A step counts once: with the earliest window that can have it, or the first whole one of this trainer. If trainers may die,
 * the windows of this one change: then only with the earliest one, whichever trainer has it. */
static int counts_step_locked(const mpidata_trainer *trainer, int64_t simulation, int64_t step, int64_t i) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_plan *plan = &trainer->job.plan;
    int64_t stride = plan->samples_stride, span = mpidata_plan_span(plan);
    int64_t earliest = step >= span ? step - span : step % stride;
    if (plan->trainers_at_least) return first_step_locked(trainer, trainer->windows.whole[i]) == earliest;
    if (mpidata_plan_trainer(plan, simulation, earliest) != trainer->job.index) return 0;
    for (int64_t first = earliest; first <= step; first += stride)
        if (mpidata_plan_trainer(plan, simulation, first) == trainer->job.index &&
            was_whole_locked(trainer, simulation, first, i))
            return 0;
    return 1;
}

/* A step has entered the ledger for the first time. */
static int step_counts_locked(mpidata_trainer *trainer, int64_t slot, int validation) {
    MPIDATA_LOCKED(&trainer->lock);
    int n = validation ? 0 : trainer->job.plan.n_moments;
    const mpidata_try_constants *constants = trainer->slots.slots[slot]->constants;
    if (n) mpidata_moments_merge(trainer->scales.own, trainer->slots.slots[slot]->moments, n);
    if (n && constants) mpidata_moments_merge(trainer->scales.own, constants->moments, n); /* each sample has them */
    return mpidata_record_add_locked(&trainer->record, &trainer->slots, slot);
}

/* Process the i-th of the windows that have just become whole. */
static int window_whole_locked(mpidata_trainer *trainer, int64_t i, int validation) {
    MPIDATA_LOCKED(&trainer->lock);
    int64_t number = trainer->windows.whole[i];
    const int64_t *steps = mpidata_windows_steps(&trainer->windows, number);
    for (int j = 0; j < trainer->job.plan.samples_window; j++) {
        const mpidata_slot *slot = trainer->slots.slots[steps[j]];
        if (counts_step_locked(trainer, *slot->simulation, *slot->step, i))
            MPIDATA_TRY(step_counts_locked(trainer, steps[j], validation));
    }
    return mpidata_trainer_whole_locked(trainer, number, validation);
}

int mpidata_enter_step_locked(mpidata_trainer *trainer, int group, int64_t by_try, int64_t slot, int validation) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_slot *entered = trainer->slots.slots[slot];
    if (!trainer->windows.plan) {
        MPIDATA_TRY(mpidata_ledger_enter(&trainer->ledger, *entered->simulation, *entered->step));
        MPIDATA_TRY(step_counts_locked(trainer, slot, validation));
        return mpidata_trainer_whole_locked(trainer, slot, validation);
    }
    MPIDATA_TRY(mpidata_windows_add(&trainer->windows, group, by_try, slot));
    for (int64_t i = 0; i < trainer->windows.n_whole; i++) MPIDATA_TRY(window_whole_locked(trainer, i, validation));
    return MPIDATA_SUCCESS;
}

int mpidata_step_whole_locked(mpidata_trainer *trainer, mpidata_assemblies *assemblies, mpidata_assembly *assembly) {
    MPIDATA_LOCKED(&trainer->lock);
    int64_t simulation = assembly->simulation, slot = assembly->slot;
    int anothers = !assembly->validation && mpidata_is_anothers_locked(trainer, simulation, assembly->step);
    int late = is_late_locked(trainer, assembly) || anothers, known = mpidata_trainer_has_step_locked(trainer, simulation, assembly->step);
    if (late || known) { /* known: another try was first */
        trainer->statistics.duplicates += known;
        mpidata_drop_assembly_locked(trainer, assemblies, assembly);
        return MPIDATA_SUCCESS;
    }
    *assembly->memory->time = assembly->time;
    *assembly->memory->simulation = simulation;
    *assembly->memory->step = assembly->step;
    MPIDATA_TRY(mpidata_enter_step_locked(trainer, assembly->group, assembly->by_try, slot, assembly->validation));
    mpidata_assembly_free(assemblies, assembly);
    return mpidata_held_locked(trainer, simulation);
}
