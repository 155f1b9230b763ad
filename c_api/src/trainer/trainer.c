#include "trainer/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/deadlines.h"
#include "containers/array.h"
#include "device/locking.h"
#include "receive/receive.h"
#include "stream/budget.h"
#include "stream/deaths/adoption.h"
#include "stream/deaths/joining.h"
#include "stream/giving/giving.h"
#include "stream/progress.h"
#include "stream/shares/shares.h"

/* -- open and close ------------------------------------------------------------------------------------------------- */

static int open_trainer(mpidata_trainer *trainer, MPI_Comm world) {
    MPIDATA_TRY(mpidata_job_join(world, MPIDATA_ROLE_TRAINER, NULL, &trainer->job));
    MPIDATA_TRY_MPI(MPI_Comm_dup(trainer->job.role, &trainer->agreement));
    trainer->living = MPI_COMM_NULL;
    MPIDATA_TRY(mpidata_trainer_open_memory(trainer));
    MPIDATA_TRY(mpidata_adoption_open(trainer));
    return mpidata_journal_open(&trainer->journal, &trainer->job.plan, trainer->job.index);
}

int mpidata_trainer_open(MPI_Fint world, MPI_Fint *trainers) {
    int level = 0;
    mpidata_trainer *trainer;
    if (!mpidata_the_trainer(&trainer))
        return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_trainer_open: this process is a trainer already.");
    MPIDATA_TRY_MPI(MPI_Query_thread(&level));
    if (level < MPI_THREAD_MULTIPLE)
        return mpidata_error(MPIDATA_ERR_MPI,
                             "A trainer needs MPI_THREAD_MULTIPLE, but MPI was initialised with less. Let mpidata "
                             "initialise MPI, or use MPI_Init_thread (mpi4py: mpi4py.rc.thread_level = 'multiple').");
    trainer = calloc(1, sizeof *trainer);
    if (!trainer) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the trainer.");
    int status = open_trainer(trainer, MPI_Comm_f2c(world));
    if (status) { /* the job ends: nothing is freed */
        return status;
    }
    *trainers = MPI_Comm_c2f(trainer->job.role);
    mpidata_trainer_set(trainer);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_lock_pages(int ordinal) {
    mpidata_trainer *trainer;
    const mpidata_arena_pages *pages;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    if (trainer->slots.n_slots) return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_trainer_lock_pages: the buffer has memory already.");
    const int status = mpidata_page_locking(ordinal, &pages);
    if (status) return mpidata_error(status, "%.1500s, but the job file has 'buffer.pinned: true'. Take that out, or have the "
                                             "device ready before MPIStreamDataset is made: torch.cuda.init().", mpidata_last_error());
    trainer->slots.arena.pages = trainer->slots.heap.arena.pages = pages;
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_begin(void) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    const mpidata_buffer *buffer = &trainer->buffer;
    if (trainer->begun) return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_trainer_begin: called a second time.");
    if (buffer->unseen > buffer->count || (trainer->next_retired && trainer->next_retired >= trainer->n_retired))
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "The checkpoint's numbers do not fit its samples.");
    trainer->validation_whole = trainer->ledger.validation_complete == trainer->job.plan.validation;
    mpidata_buffer_see_again(&trainer->buffer);
    while (trainer->n_restored) mpidata_windows_let_go(&trainer->windows, trainer->restored[--trainer->n_restored]);
    mpidata_lock_take(&trainer->lock);
    const int status = mpidata_budget_inherit_locked(trainer);
    mpidata_lock_give(&trainer->lock);
    MPIDATA_TRY(status);
    trainer->begun = 1;
    trainer->began = trainer->drawn;
    int failed = pthread_create(&trainer->thread, NULL, mpidata_receive_thread, trainer);
    if (failed)
        return mpidata_error(MPIDATA_ERR_MEMORY, "The receive thread cannot be started: %s.", strerror(failed));
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_close(double timeout_s) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    double deadline = mpidata_trainer_deadline(timeout_s);
    mpidata_lock_take(&trainer->lock);
    mpidata_event stop = {.kind = MPIDATA_EVENT_STOP}, goodbye = {.kind = MPIDATA_EVENT_GOODBYE};
    (void)snprintf(stop.text, sizeof stop.text, "its program ended before the stream");
    int none = mpidata_draws_ended(&trainer->phase) || !trainer->job.plan.groups; /* are left to be drawn */
    int status = none ? MPIDATA_SUCCESS : mpidata_trainer_post_locked(trainer, &stop);
    int in_order = mpidata_draws_ended(&trainer->phase) && !mpidata_draws_left(&trainer->phase) && !trainer->phase.cut_short;
    if (in_order && trainer->journal.written)
        (void)fprintf(trainer->journal.written, "%c\n", MPIDATA_JOURNAL_OVER);
    if (!status) status = mpidata_journal_flush(&trainer->journal);
    mpidata_phase_leave_locked(&trainer->phase);
    if (!status) status = mpidata_trainer_post_status_locked(trainer); /* the last, for the summary */
    if (!status) status = mpidata_trainer_post_draws_locked(trainer);
    if (!status) status = mpidata_trainer_post_locked(trainer, &goodbye);
    mpidata_trainer_wake_locked(trainer);
    while (!status && !mpidata_receive_done(&trainer->phase))
        if (!mpidata_trainer_wait_locked(trainer, deadline)) break;
    int done = mpidata_receive_done(&trainer->phase);
    mpidata_lock_give(&trainer->lock);
    MPIDATA_TRY(status);
    if (!done) return mpidata_error(MPIDATA_ERR_AGAIN, "The job did not end within %.0f s.", timeout_s);
    (void)pthread_join(trainer->thread, NULL);
    mpidata_job_left();
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_free(void) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    if (!mpidata_receive_done(&trainer->phase))
        return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_trainer_free: call mpidata_trainer_close first.");
    mpidata_trainer_set(NULL);
    mpidata_buffer_close(&trainer->buffer);
    mpidata_windows_close(&trainer->windows);
    if (!trainer->slots_in_use) mpidata_slots_close(&trainer->slots);
    mpidata_ledger_close(&trainer->ledger);
    mpidata_journal_close(&trainer->journal);
    mpidata_scales_close(&trainer->scales);
    mpidata_trainer_close_state(trainer);
    mpidata_adoption_close(trainer);
    mpidata_giving_close(trainer);
    mpidata_shares_close(trainer);
    free(trainer->arrived);
    free(trainer->validation);
    free(trainer->retired);
    free(trainer->next_batch);
    free(trainer->restored);
    free(trainer->drawn_with.list);
    mpidata_pinned_free(trainer->checkpoint.pinned);
    mpidata_job_leave(&trainer->job);
    free(trainer);
    return MPIDATA_SUCCESS;
}

/* -- validation, reports -------------------------------------------------------------------------------------------- */

static mpidata_trainer *this_trainer(void) {
    mpidata_trainer *trainer;
    (void)mpidata_the_trainer(&trainer);
    return trainer;
}

static int by_simulation_and_step_locked(const void *a, const void *b) {
    MPIDATA_LOCKED(&this_trainer()->lock);
    const mpidata_trainer *trainer = this_trainer();
    const mpidata_slot *one = trainer->slots.slots[*mpidata_trainer_steps_of_locked(trainer, a)];
    const mpidata_slot *other = trainer->slots.slots[*mpidata_trainer_steps_of_locked(trainer, b)];
    if (*one->simulation != *other->simulation) return *one->simulation < *other->simulation ? -1 : 1;
    return *one->step < *other->step ? -1 : *one->step > *other->step;
}

int mpidata_trainer_validation(int64_t *count, double timeout_s) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    double deadline = mpidata_trainer_deadline(timeout_s);
    int status = MPIDATA_SUCCESS;
    mpidata_lock_take(&trainer->lock);
    while (!status && !mpidata_validation_is_whole_locked(trainer)) {
        if (trainer->error)
            status = mpidata_error(trainer->error, "%s", trainer->error_text);
        else if (mpidata_stopping(&trainer->phase))
            status = MPIDATA_END;
        else if (mpidata_one_has_left_locked(trainer))
            status = MPIDATA_MEET;
        else if (!mpidata_trainer_wait_locked(trainer, deadline))
            status = mpidata_error(MPIDATA_ERR_AGAIN, "The validation set is not whole yet.");
    }
    if (!status) {
        *count = trainer->n_validation;
        if (trainer->n_validation)
            qsort(trainer->validation, (size_t)trainer->n_validation, sizeof *trainer->validation,
                  by_simulation_and_step_locked);
    }
    mpidata_lock_give(&trainer->lock);
    return status;
}

static const mpidata_slot *validation_step_locked(const mpidata_trainer *trainer, int64_t index) {
    MPIDATA_LOCKED(&trainer->lock);
    int64_t window = trainer->job.plan.samples_window;
    if (index < 0 || index >= trainer->n_validation * window) return NULL;
    const int64_t *steps = mpidata_trainer_steps_of_locked(trainer, &trainer->validation[index / window]);
    return trainer->slots.slots[steps[index % window]];
}

static int validation_step(mpidata_trainer **trainer, int64_t index, const mpidata_slot **slot) {
    MPIDATA_TRY(mpidata_the_trainer(trainer));
    mpidata_lock_take(&(*trainer)->lock);
    *slot = validation_step_locked(*trainer, index);
    mpidata_lock_give(&(*trainer)->lock);
    if (*slot) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ARGUMENT, "There is no validation sample %lld.", (long long)index);
}

int mpidata_trainer_validation_constants(int64_t index, mpidata_try_constants **constants) {
    mpidata_trainer *trainer;
    const mpidata_slot *slot;
    MPIDATA_TRY(validation_step(&trainer, index, &slot));
    mpidata_lock_take(&trainer->lock);
    *constants = mpidata_constants_keep(slot->constants);
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_validation_sample(int64_t index, int64_t *numbers, double *parameters, double *time, int64_t *step,
                                      int64_t *simulation) {
    mpidata_trainer *trainer;
    const mpidata_slot *slot;
    MPIDATA_TRY(validation_step(&trainer, index, &slot));
    const size_t n = (size_t)trainer->job.plan.n_parameters, n_numbers = (size_t)trainer->job.plan.n_numbers;
    if (n) memcpy(parameters, slot->parameters, n * sizeof *parameters);
    if (n_numbers) memcpy(numbers, slot->parts.numbers, n_numbers * sizeof *numbers);
    *time = *slot->time;
    *step = *slot->step;
    *simulation = *slot->simulation;
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_validation_copy(int64_t index, void *const *fields) {
    mpidata_trainer *trainer;
    const mpidata_slot *slot;
    MPIDATA_TRY(validation_step(&trainer, index, &slot));
    const mpidata_packing alone = {.all = slot->parts.numbers};
    mpidata_slot_copy(&trainer->slots, slot, 0, &alone, fields, memcpy);
    return MPIDATA_SUCCESS;
}

static int post_now(mpidata_event *event, const char *text) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    (void)snprintf(event->text, sizeof event->text, "%s", text ? text : "");
    mpidata_lock_take(&trainer->lock);
    int status = mpidata_trainer_post_locked(trainer, event);
    if (event->kind == MPIDATA_EVENT_STOP) mpidata_phase_leave_locked(&trainer->phase);
    mpidata_trainer_wake_locked(trainer);
    mpidata_lock_give(&trainer->lock);
    return status;
}

int mpidata_trainer_report(const char *name, double value) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    int status = mpidata_trainer_post_report_locked(trainer, name, value);
    mpidata_trainer_wake_locked(trainer);
    mpidata_lock_give(&trainer->lock);
    return status;
}

static int losses_wait_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_outgoing *at = trainer->outbox;
    while (at && at->event.kind != MPIDATA_EVENT_LOSSES) at = at->next;
    return at != NULL;
}

int mpidata_trainer_losses(const mpidata_losses *losses, int64_t count, int last) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    int status = !last && losses_wait_locked(trainer) ? MPIDATA_ERR_AGAIN : MPIDATA_SUCCESS;
    for (int64_t at = 0; !status && at < count; at += MPIDATA_LOSSES_MAX) {
        int64_t n = count - at < MPIDATA_LOSSES_MAX ? count - at : MPIDATA_LOSSES_MAX;
        mpidata_event event = {.kind = MPIDATA_EVENT_LOSSES, .losses = {(int32_t)n}};
        memcpy(event.text, losses + at, (size_t)n * sizeof *losses);
        status = mpidata_trainer_post_locked(trainer, &event);
    }
    mpidata_trainer_wake_locked(trainer);
    mpidata_lock_give(&trainer->lock);
    return status;
}

static int may_cancel_locked(const mpidata_trainer *trainer, int64_t id) {
    MPIDATA_LOCKED(&trainer->lock);
    if (id < 0 || id >= trainer->job.plan.simulations || mpidata_stopping(&trainer->phase)) return 0;
    const mpidata_ledger_entry *entry = &trainer->ledger.entries[id];
    const int alone = !trainer->job.rank; /* without a job: all steps are known from the start */
    return (entry->steps < 0 || alone) && !entry->cancelled;
}

static int post_cancel_locked(mpidata_trainer *trainer, const int64_t *ids, int64_t n) {
    MPIDATA_LOCKED(&trainer->lock);
    for (int64_t at = 0; at < n; at += MPIDATA_CANCEL_MAX) {
        int64_t some = n - at < MPIDATA_CANCEL_MAX ? n - at : MPIDATA_CANCEL_MAX;
        mpidata_event event = {.kind = MPIDATA_EVENT_CANCEL, .cancel = {(int32_t)some}};
        memcpy(event.text, ids + at, (size_t)some * sizeof *ids);
        MPIDATA_TRY(mpidata_trainer_post_locked(trainer, &event));
    }
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_cancel(const int64_t *ids, int64_t n, int64_t *taken, int64_t *n_taken) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    *n_taken = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!may_cancel_locked(trainer, ids[i])) continue;
        trainer->ledger.entries[ids[i]].cancelled = MPIDATA_CANCEL_ASKED;
        taken[(*n_taken)++] = ids[i];
    }
    /* In a replay the journal determines which samples no longer come, and when (receive/replay.c). */
    int status = trainer->journal.replayed ? MPIDATA_SUCCESS : post_cancel_locked(trainer, taken, *n_taken);
    mpidata_trainer_wake_locked(trainer);
    mpidata_lock_give(&trainer->lock);
    return status;
}

int mpidata_trainer_regroup(MPI_Fint living) {
    mpidata_trainer *trainer;
    MPI_Comm comm = MPI_Comm_f2c(living);
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    MPIDATA_TRY_MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    return mpidata_come_together(trainer, comm);
}

int mpidata_trainer_hold(int on) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    trainer->held += on ? 1 : -1;
    while (on && (trainer->in_round || trainer->joins))
        (void)mpidata_lock_sleep_locked(&trainer->lock, &trainer->news, MPIDATA_FOR_EVER);
    trainer->alone += on ? 1 : -1;
    if (!trainer->held) mpidata_lock_tell_locked(&trainer->lock, &trainer->wake);
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_trained(int64_t count, const int64_t *samples, int64_t n, const int64_t *drawn) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    const mpidata_plan *plan = &trainer->job.plan;
    for (int64_t i = 0; i < 2 * count; i += 2)
        if (!mpidata_plan_has(plan, samples[i]) || samples[i + 1] < 0 || samples[i + 1] >= MPIDATA_STEPS_MAX)
            return mpidata_error(MPIDATA_ERR_ARGUMENT, "There is no sample of simulation %lld, step %lld.",
                                 (long long)samples[i], (long long)samples[i + 1]);
    for (int64_t i = 0; i < 2 * n; i += 2)
        if (drawn[i] < 0 || drawn[i] >= plan->trainers)
            return mpidata_error(MPIDATA_ERR_ARGUMENT, "There is no trainer %lld.", (long long)drawn[i]);
    mpidata_lock_take(&trainer->lock);
    for (int64_t i = 0; i < 2 * n && trainer->budget.draws; i += 2) trainer->budget.draws[drawn[i]] += drawn[i + 1];
    mpidata_adoption *adoption = &trainer->adoption;
    const int64_t all = adoption->n_trained + 2 * count;
    const int room = mpidata_array_reserve(&adoption->trained, &adoption->trained_allocated, all, 0, sizeof *samples);
    if (room && count) memcpy(adoption->trained + adoption->n_trained, samples, 2 * (size_t)count * sizeof *samples);
    if (room) adoption->n_trained = all;
    mpidata_lock_give(&trainer->lock);
    return room ? MPIDATA_SUCCESS : mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the trainer.");
}

int mpidata_trainer_pack_trained(const int64_t **numbers, int64_t *n) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    free(trainer->adoption.packed);
    trainer->adoption.packed = NULL;
    const int status = mpidata_pack_trained_locked(trainer, &trainer->adoption.packed, n);
    *numbers = trainer->adoption.packed;
    mpidata_lock_give(&trainer->lock);
    return status;
}

int mpidata_trainer_take_trained(const int64_t *numbers, int64_t n) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    const int status = mpidata_take_trained_locked(trainer, numbers, n);
    mpidata_lock_give(&trainer->lock);
    return status;
}

int mpidata_trainer_rests(void) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    trainer->adoption.over = trainer->adoption.rests = 1;
    mpidata_phase_end_draws_locked(&trainer->phase);
    mpidata_trainer_wake_locked(trainer);
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_meet(int *over) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    *over = mpidata_draws_ended(&trainer->phase) && mpidata_all_adopted_locked(trainer);
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_met(void) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    trainer->adoption.over = 1;
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_wanted(int64_t *number, int64_t *count) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    int status = trainer->error ? mpidata_error(trainer->error, "%s", trainer->error_text) : MPIDATA_SUCCESS;
    *number = trainer->trainers_order;
    *count = trainer->trainers_wanted;
    if (mpidata_stopping(&trainer->phase) || mpidata_all_gone(&trainer->phase)) *count = -1;
    mpidata_lock_give(&trainer->lock);
    return status;
}

int mpidata_trainer_be_at(int64_t drawn) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    trainer->drawn = trainer->began = trainer->budget.base = drawn;
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_agreed_checkpoint(int64_t *agreed, int64_t *before) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    *agreed = trainer->checkpoint.agreed;
    *before = trainer->checkpoint.joining ? -1 : trainer->checkpoint.before;
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_takes_place(void) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    trainer->checkpoint.joining = 1;
    trainer->checkpoint.asking = trainer->checkpoint.due = 0;
    trainer->shares.anew = 1;
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

/* Others have had all samples, including those of this trainer: leaving stops nothing. Their scripts, and through them this
 * one's, may know of the end of their loops shortly before it is known here. */
static int is_over_without(void) {
    mpidata_trainer *trainer = this_trainer();
    const double deadline = mpidata_trainer_deadline(1e-3 * (double)MPIDATA_OVER_WITHOUT_MS);
    if (!trainer) return 0;
    mpidata_lock_take(&trainer->lock);
    while (trainer->giving.phase == MPIDATA_GAVE && !mpidata_draws_ended(&trainer->phase) && !trainer->error)
        if (!mpidata_trainer_wait_locked(trainer, deadline)) break;
    const int over = trainer->giving.phase == MPIDATA_GAVE && trainer->phase.all_drawn;
    mpidata_lock_give(&trainer->lock);
    return over;
}

int mpidata_trainer_stop(int failed, const char *reason) {
    mpidata_event event = {.kind = MPIDATA_EVENT_STOP, .stop = {failed}};
    return !failed && is_over_without() ? MPIDATA_SUCCESS : post_now(&event, reason);
}

int mpidata_trainer_steps(int64_t *steps) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    *steps = mpidata_ledger_steps(&trainer->ledger);
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_stopped(int *stopped) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    *stopped = trainer->phase.cut_short;
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_statistics(mpidata_statistics *statistics) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    *statistics = mpidata_trainer_statistics_now_locked(trainer);
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}
