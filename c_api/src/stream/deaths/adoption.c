#include "stream/deaths/adoption.h"

#include <stdlib.h>

#include "containers/array.h"
#include "stream/budget.h"
#include "stream/progress.h"

int mpidata_adoption_open(mpidata_trainer *trainer) {
    mpidata_adoption *adoption = &trainer->adoption;
    const size_t n = (size_t)trainer->job.plan.trainers;
    if (!trainer->job.plan.trainers_at_least || !trainer->job.plan.n_fields) return MPIDATA_SUCCESS;
    adoption->dead = calloc(n, sizeof *adoption->dead);
    adoption->left_out = calloc(n, 1);
    adoption->on = 1;
    return adoption->dead && adoption->left_out ? MPIDATA_SUCCESS
                                                : mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the trainer.");
}

void mpidata_adoption_close(mpidata_trainer *trainer) {
    free(trainer->adoption.dead);
    free(trainer->adoption.left_out);
    free(trainer->adoption.trained);
    free(trainer->budget.draws);
}

static int is_told_locked(const mpidata_trainer *trainer, int dead) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_adoption *adoption = &trainer->adoption;
    for (int i = 0; i < adoption->n_dead; i++)
        if (adoption->dead[i] == dead) return 1;
    return 0;
}

void mpidata_note_death_locked(mpidata_trainer *trainer, int dead) {
    MPIDATA_LOCKED(&trainer->lock);
    if (!trainer->adoption.on || is_told_locked(trainer, dead)) return; /* there is room for each once */
    trainer->adoption.dead[trainer->adoption.n_dead++] = dead;
    trainer->validation_whole = !trainer->job.plan.validation; /* until the scheduler says so again */
    mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
}

/* Mark all but those in the communicator. */
static int find_left_out(const mpidata_trainer *trainer, MPI_Comm living, char *left_out) {
    MPI_Group all, some;
    int n = 0, status = MPIDATA_SUCCESS;
    MPIDATA_TRY_MPI(MPI_Comm_group(trainer->job.role, &all));
    MPIDATA_TRY_MPI(MPI_Comm_group(living, &some));
    for (int t = 0; t < trainer->job.plan.trainers && !status; t++) {
        status = mpidata_check_mpi(MPI_Group_translate_ranks(all, 1, &t, some, &n), "MPI_Group_translate_ranks");
        left_out[t] = n == MPI_UNDEFINED;
    }
    (void)MPI_Group_free(&all);
    (void)MPI_Group_free(&some);
    return status;
}

int mpidata_come_together(mpidata_trainer *trainer, MPI_Comm living) {
    char *left_out = calloc((size_t)trainer->job.plan.trainers, 1);
    if (!left_out) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the trainer.");
    const int status = find_left_out(trainer, living, left_out);
    mpidata_lock_take(&trainer->lock);
    for (int t = 0; t < trainer->job.plan.trainers && trainer->adoption.on; t++) trainer->adoption.left_out[t] = left_out[t];
    trainer->living = living;
    trainer->shares.changes = trainer->adoption.on;
    mpidata_trainer_wake_locked(trainer);
    mpidata_lock_give(&trainer->lock);
    free(left_out);
    return status;
}

MPI_Comm mpidata_take_living_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    const MPI_Comm living = trainer->living;
    for (int t = 0; t < trainer->job.plan.trainers && trainer->adoption.on && living != MPI_COMM_NULL; t++)
        if (trainer->adoption.left_out[t] && !is_told_locked(trainer, t)) return MPI_COMM_NULL;
    trainer->living = MPI_COMM_NULL;
    return living;
}

/* Nothing is to come for this one, whatever happens to others. */
static int is_over_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    return trainer->adoption.over || mpidata_draws_told(&trainer->phase);
}

static int look_for_steps_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    for (int64_t i = 0; i < trainer->job.plan.simulations + trainer->job.plan.validation; i++) {
        const mpidata_event event = {.kind = MPIDATA_EVENT_LACKS, .lacks = {i}};
        MPIDATA_TRY(mpidata_ledger_lacks(&trainer->ledger, i) ? mpidata_trainer_post_locked(trainer, &event)
                                                              : mpidata_held_locked(trainer, i));
    }
    return MPIDATA_SUCCESS;
}

int mpidata_adopt_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_adoption *adoption = &trainer->adoption;
    mpidata_plan *plan = &trainer->job.plan;
    const int over = is_over_locked(trainer), before = plan->n_lost;
    if (!adoption->on) return MPIDATA_SUCCESS;
    MPIDATA_TRY(mpidata_enter_trained_locked(trainer)); /* as samples of those that have had their steps until now */
    while (plan->n_lost < adoption->n_dead && (over || adoption->left_out[adoption->dead[plan->n_lost]]))
        if (mpidata_plan_lose(plan, adoption->dead[plan->n_lost]))
            return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the trainer.");
    adoption->greets = 1;
    if (plan->n_lost == before) return MPIDATA_SUCCESS;
    MPIDATA_TRY(mpidata_budget_inherit_locked(trainer));
    if (!over) {
        trainer->end_of_stream = 0;
        mpidata_buffer_reopen(&trainer->buffer);
        mpidata_phase_reopen_locked(&trainer->phase);
        MPIDATA_TRY(look_for_steps_locked(trainer));
    }
    const mpidata_event event = {.kind = MPIDATA_EVENT_ADOPTED, .adopted = {plan->n_lost}};
    return mpidata_trainer_post_locked(trainer, &event);
}

int mpidata_dies_late_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    return trainer->adoption.n_dead > trainer->job.plan.n_lost && is_over_locked(trainer);
}

/* Must the trainers still meet at the end, or at a death? */
static int may_meet_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    return trainer->adoption.on && !trainer->adoption.over && !trainer->phase.cut_short;
}

int mpidata_one_has_died_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_adoption *adoption = &trainer->adoption;
    for (int i = 0; i < adoption->n_dead && may_meet_locked(trainer); i++)
        if (!adoption->left_out[adoption->dead[i]]) return 1;
    return 0;
}

int mpidata_must_meet_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    if (mpidata_one_has_died_locked(trainer)) return 1;
    return may_meet_locked(trainer) && mpidata_draws_ended(&trainer->phase) && !trainer->checkpoint.asking;
}

int mpidata_validation_is_whole_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    if (trainer->adoption.over) return 1;
    return trainer->validation_whole && mpidata_all_adopted_locked(trainer);
}

int mpidata_all_adopted_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_adoption *adoption = &trainer->adoption;
    for (int t = 0; t < trainer->job.plan.trainers && adoption->on; t++)
        if ((adoption->left_out[t] || is_told_locked(trainer, t)) && !mpidata_plan_has_lost(&trainer->job.plan, t)) return 0;
    return 1;
}

int mpidata_enter_trained_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_adoption *adoption = &trainer->adoption;
    for (int64_t i = 0; i < adoption->n_trained; i += 2) {
        const int64_t simulation = adoption->trained[i], step = adoption->trained[i + 1];
        if (!mpidata_ledger_has(&trainer->ledger, simulation, step))
            MPIDATA_TRY(mpidata_ledger_enter(&trainer->ledger, simulation, step));
        mpidata_budget_count_locked(trainer, simulation, step);
    }
    adoption->n_trained = 0;
    return MPIDATA_SUCCESS;
}
