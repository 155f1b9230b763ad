#include "stream/deaths/adoption.h"

#include <stdlib.h>

#include "containers/array.h"
#include "stream/budget.h"
#include "stream/deaths/joining.h"
#include "stream/progress.h"

int mpidata_adoption_open(mpidata_trainer *trainer) {
    mpidata_adoption *adoption = &trainer->adoption;
    const size_t n = (size_t)trainer->job.plan.trainers;
    if (!trainer->job.plan.trainers_at_least || !trainer->job.plan.n_fields) return MPIDATA_SUCCESS;
    adoption->told = calloc((size_t)mpidata_plan_most_changes(&trainer->job.plan), sizeof *adoption->told);
    adoption->left_out = calloc(n, 1);
    adoption->on = 1;
    return adoption->told && adoption->left_out ? MPIDATA_SUCCESS
                                                : mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the trainer.");
}

void mpidata_adoption_close(mpidata_trainer *trainer) {
    free(trainer->adoption.told);
    free(trainer->adoption.left_out);
    free(trainer->adoption.trained);
    free(trainer->adoption.packed);
    free(trainer->budget.draws);
}

static int is_told_locked(const mpidata_trainer *trainer, int code) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_adoption *adoption = &trainer->adoption;
    for (int i = 0; i < adoption->n_told; i++)
        if (adoption->told[i] == code) return 1;
    return 0;
}

static int has_left_locked(const mpidata_trainer *trainer, int t) { return is_told_locked(trainer, mpidata_change_code(t, 0)); }

/* According to the scheduler so far. */
static int trains_locked(const mpidata_trainer *trainer, int t) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_plan *plan = &trainer->job.plan;
    const int began = t < plan->trainers - plan->trainer_spares || is_told_locked(trainer, mpidata_change_code(t, 1));
    return began && !has_left_locked(trainer, t);
}

void mpidata_note_change_locked(mpidata_trainer *trainer, int code) {
    MPIDATA_LOCKED(&trainer->lock);
    if (!trainer->adoption.on || is_told_locked(trainer, code)) return; /* there is room for each change once */
    trainer->adoption.told[trainer->adoption.n_told++] = code;
    trainer->validation_whole = !trainer->job.plan.validation; /* until the scheduler reports it again */
    mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
}

/* Mark all except those in the communicator. */
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
    for (int t = 0; t < trainer->job.plan.trainers && trainer->adoption.on; t++) {
        trainer->shares.anew |= trainer->adoption.left_out[t] && !left_out[t];
        trainer->adoption.left_out[t] = left_out[t];
    }
    trainer->living = living;
    trainer->shares.changes = trainer->adoption.on;
    if (trainer->adoption.on && !left_out[trainer->job.index] && !mpidata_plan_trains(&trainer->job.plan, trainer->job.index))
        (void)mpidata_trainer_post_report_locked(trainer, MPIDATA_JOINS, 1.0);
    mpidata_trainer_wake_locked(trainer);
    mpidata_lock_give(&trainer->lock);
    free(left_out);
    return status;
}

MPI_Comm mpidata_take_living_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    const MPI_Comm living = trainer->living;
    for (int t = 0; t < trainer->job.plan.trainers && trainer->adoption.on && living != MPI_COMM_NULL; t++) {
        const int trains = trains_locked(trainer, t);
        if (trainer->adoption.left_out[t] ? trains : !trains && !has_left_locked(trainer, t)) return MPI_COMM_NULL;
    }
    trainer->living = MPI_COMM_NULL;
    return living;
}

/* Nothing more will come for this one, whatever happens to others. */
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

/* Whether the scripts have met after this change. A trainer without a place, or one that has had all batches, does not ask. */
static int may_adopt_locked(const mpidata_trainer *trainer, int code) {
    MPIDATA_LOCKED(&trainer->lock);
    const int t = mpidata_change_trainer(code), left_out = trainer->adoption.left_out[t];
    if (is_over_locked(trainer) || !mpidata_plan_trains(&trainer->job.plan, trainer->job.index)) return 1;
    return mpidata_change_joins(code) ? !left_out || has_left_locked(trainer, t) : left_out;
}

/* More may come, and samples that now belong to others are dropped. */
static int go_on_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    MPIDATA_TRY(mpidata_drop_others_locked(trainer));
    MPIDATA_TRY(mpidata_budget_inherit_locked(trainer));
    if (is_over_locked(trainer)) return MPIDATA_SUCCESS;
    trainer->end_of_stream = 0;
    mpidata_buffer_reopen(&trainer->buffer);
    mpidata_phase_reopen_locked(&trainer->phase);
    return look_for_steps_locked(trainer);
}

int mpidata_adopt_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_adoption *adoption = &trainer->adoption;
    mpidata_plan *plan = &trainer->job.plan;
    const int before = plan->n_changes;
    if (!adoption->on || trainer->living != MPI_COMM_NULL) return MPIDATA_SUCCESS; /* first in the communicator of all */
    MPIDATA_TRY(mpidata_enter_trained_locked(trainer)); /* as samples of the trainers that have had their steps so far */
    while (plan->n_changes < adoption->n_told && may_adopt_locked(trainer, adoption->told[plan->n_changes])) {
        if (mpidata_change_joins(adoption->told[plan->n_changes])) mpidata_budget_begin_anew_locked(trainer);
        if (mpidata_plan_change_by(plan, adoption->told[plan->n_changes]))
            return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the trainer.");
    }
    if (plan->n_changes == before) return MPIDATA_SUCCESS;
    MPIDATA_TRY(go_on_locked(trainer));
    const mpidata_event event = {.kind = MPIDATA_EVENT_ADOPTED, .adopted = {plan->n_changes}};
    return mpidata_trainer_post_locked(trainer, &event);
}

/* Whether the trainers must still meet at the end, or because one has left. */
static int may_meet_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    return trainer->adoption.on && !trainer->adoption.over && !trainer->phase.cut_short;
}

int mpidata_one_has_left_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_adoption *adoption = &trainer->adoption;
    for (int i = 0; i < adoption->n_told && may_meet_locked(trainer); i++)
        if (!mpidata_change_joins(adoption->told[i]) && !adoption->left_out[adoption->told[i]]) return 1;
    return 0;
}

int mpidata_must_meet_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    if (mpidata_one_has_left_locked(trainer)) return 1;
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
        if (adoption->left_out[t] == mpidata_plan_trains(&trainer->job.plan, t)) return 0;
    return !adoption->on || trainer->job.plan.n_changes == adoption->n_told;
}

int mpidata_enter_trained_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_adoption *adoption = &trainer->adoption;
    for (int64_t i = 0; i < adoption->n_trained; i += 2) {
        const int64_t simulation = adoption->trained[i], step = adoption->trained[i + 1];
        if (!mpidata_ledger_has(&trainer->ledger, simulation, step))
            MPIDATA_TRY(mpidata_ledger_enter(&trainer->ledger, simulation, step));
    }
    adoption->n_trained = 0;
    return MPIDATA_SUCCESS;
}
