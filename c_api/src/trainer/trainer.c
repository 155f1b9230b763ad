#include "trainer/trainer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "buffer/copy.h"
#include "solver/solver.h"
#include "trainer/trainer_state.h"
#include "base/wait.h"

enum { UNPIN_EVERY = 256 << 10 }; /* bytes: the next sample is received while their slots are still in cache */

static mpidata_trainer *the_trainer; /* one per process */

static int need_trainer(void) {
    if (the_trainer) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ORDER, "This process has not joined a job as a trainer.");
}

int mpidata_the_trainer(mpidata_trainer **trainer) {
    *trainer = the_trainer;
    return need_trainer();
}

void mpidata_trainer_wake(mpidata_trainer *trainer) {
    trainer->woken = 1;
    (void)pthread_cond_signal(&trainer->wake);
}

/* Does only the newer one of the two count? Sums of the record, whose names have a dot, all do. */
static int supersedes(const mpidata_event *newer, const mpidata_event *older) {
    if (newer->kind != older->kind) return 0;
    if (newer->kind == MPIDATA_EVENT_REPORT) return !strchr(newer->text, '.') && !strcmp(newer->text, older->text);
    return newer->kind == MPIDATA_EVENT_STATUS || newer->kind == MPIDATA_EVENT_CHECKPOINT_WANTED;
}

/* A scheduler that takes nothing for a while costs no memory without end. Of reports the first one counts, too. */
static void drop_superseded(mpidata_trainer *trainer, const mpidata_event *event) {
    int keep = event->kind == MPIDATA_EVENT_REPORT;
    mpidata_outgoing **at = &trainer->outbox;
    for (mpidata_outgoing *old; (old = *at);) {
        if (!supersedes(event, &old->event) || keep-- > 0) {
            at = &old->next;
            continue;
        }
        *at = old->next;
        free(old);
    }
    trainer->outbox_end = at;
}

int mpidata_trainer_post(mpidata_trainer *trainer, const mpidata_event *event) {
    drop_superseded(trainer, event);
    mpidata_outgoing *outgoing = malloc(sizeof *outgoing);
    if (!outgoing) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a message to the scheduler.");
    outgoing->event = *event;
    outgoing->event.rank = trainer->job.rank;
    outgoing->event.index = trainer->job.index;
    outgoing->next = NULL;
    *trainer->outbox_end = outgoing;
    trainer->outbox_end = &outgoing->next;
    return MPIDATA_SUCCESS;
}

mpidata_statistics mpidata_trainer_statistics_now(const mpidata_trainer *trainer) {
    mpidata_statistics statistics = trainer->statistics;
    statistics.drawn = trainer->drawn;
    statistics.fill = trainer->buffer.count;
    statistics.capacity = trainer->buffer.capacity;
    return statistics;
}

int mpidata_trainer_post_status(mpidata_trainer *trainer) {
    int final;
    mpidata_event event = {.kind = MPIDATA_EVENT_STATUS, .ended = trainer->told_end};
    mpidata_statistics statistics = mpidata_trainer_statistics_now(trainer);
    memcpy(event.statistics, &statistics, sizeof event.statistics);
    event.starved = trainer->waiting && mpidata_trainer_guaranteed(trainer, &final) <= trainer->granted && !final;
    event.full = trainer->n_arrived > 0 || mpidata_buffer_full(&trainer->buffer);
    return mpidata_trainer_post(trainer, &event);
}

void mpidata_trainer_fail(mpidata_trainer *trainer, int status) {
    if (trainer->error) return;
    trainer->error = status;
    memcpy(trainer->error_text, mpidata_last_error(), sizeof trainer->error_text);
    mpidata_event event = {.kind = MPIDATA_EVENT_ERROR};
    (void)snprintf(event.text, sizeof event.text, "%s", trainer->error_text);
    (void)mpidata_trainer_post(trainer, &event);
    (void)pthread_cond_broadcast(&trainer->news);
}

int mpidata_report_error_of_trainer(const char *sentence) {
    mpidata_trainer *trainer = the_trainer;
    MPIDATA_TRY(need_trainer());
    mpidata_event event = {.kind = MPIDATA_EVENT_ERROR};
    (void)snprintf(event.text, sizeof event.text, "%s", sentence);
    (void)pthread_mutex_lock(&trainer->lock);
    int status = mpidata_trainer_post(trainer, &event);
    mpidata_trainer_wake(trainer);
    (void)pthread_mutex_unlock(&trainer->lock);
    return status;
}

/* -- open and close ------------------------------------------------------------------------------------------------- */

static int open_locks(mpidata_trainer *trainer) {
    pthread_condattr_t attributes;
    if (pthread_mutex_init(&trainer->lock, NULL) || pthread_condattr_init(&attributes) ||
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) || pthread_cond_init(&trainer->news, &attributes) ||
        pthread_cond_init(&trainer->wake, &attributes))
        return mpidata_error(MPIDATA_ERR_MEMORY, "The trainer's locks cannot be made.");
    (void)pthread_condattr_destroy(&attributes);
    return MPIDATA_SUCCESS;
}

static int open_trainer(mpidata_trainer *trainer, MPI_Comm world) {
    const mpidata_plan *plan = &trainer->job.plan;
    MPIDATA_TRY(mpidata_job_join(world, MPIDATA_ROLE_TRAINER, NULL, &trainer->job));
    MPIDATA_TRY_MPI(MPI_Comm_dup(trainer->job.role, &trainer->agreement));
    MPIDATA_TRY(open_locks(trainer));
    MPIDATA_TRY(mpidata_ledger_open(&trainer->ledger, plan, trainer->job.index));
    MPIDATA_TRY(mpidata_record_open(&trainer->record));
    if (mpidata_slots_open(&trainer->slots, plan)) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the trainer.");
    trainer->outbox_end = &trainer->outbox;
    if (mpidata_buffer_open(&trainer->buffer, plan->policy, plan->capacity, plan->watermark, plan->seed,
                            (uint64_t)trainer->job.index))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a buffer of %lld samples. Lower buffer.capacity.",
                             (long long)plan->capacity);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_open(MPI_Fint world, MPI_Fint *trainers) {
    int level = 0;
    if (the_trainer)
        return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_trainer_open: this process is a trainer already.");
    MPIDATA_TRY_MPI(MPI_Query_thread(&level));
    if (level < MPI_THREAD_MULTIPLE)
        return mpidata_error(MPIDATA_ERR_MPI,
                             "A trainer needs MPI_THREAD_MULTIPLE, but MPI was initialised with less. Let mpidata "
                             "initialise MPI, or use MPI_Init_thread (mpi4py: mpi4py.rc.thread_level = 'multiple').");
    mpidata_trainer *trainer = calloc(1, sizeof *trainer);
    if (!trainer) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the trainer.");
    int status = open_trainer(trainer, MPI_Comm_f2c(world));
    if (status) { /* the job ends with it: nothing is given back */
        return status;
    }
    *trainers = MPI_Comm_c2f(trainer->job.role);
    the_trainer = trainer;
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_begin(void) {
    mpidata_trainer *trainer = the_trainer;
    MPIDATA_TRY(need_trainer());
    const mpidata_buffer *buffer = &trainer->buffer;
    if (trainer->begun) return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_trainer_begin: called a second time.");
    if (buffer->unseen > buffer->count || (trainer->next_retired && trainer->next_retired >= trainer->n_retired))
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "The checkpoint's numbers do not fit its samples.");
    trainer->validation_whole = trainer->ledger.validation_complete == trainer->job.plan.validation;
    trainer->begun = 1;
    int failed = pthread_create(&trainer->thread, NULL, mpidata_receive_thread, trainer);
    if (failed)
        return mpidata_error(MPIDATA_ERR_MEMORY, "The receive thread cannot be started: %s.", strerror(failed));
    return MPIDATA_SUCCESS;
}

/* Under the lock: sleep until there is news or the deadline has passed; 0 at the deadline. */
static int wait_for_news(mpidata_trainer *trainer, double deadline) {
    double seconds = floor(deadline);
    struct timespec until = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((deadline - seconds) * 1e9)};
    return pthread_cond_timedwait(&trainer->news, &trainer->lock, &until) != ETIMEDOUT;
}

static double deadline_in(double timeout_s) { return mpidata_now() + (timeout_s < 1e9 ? timeout_s : 1e9); }

int mpidata_trainer_close(double timeout_s) {
    mpidata_trainer *trainer = the_trainer;
    MPIDATA_TRY(need_trainer());
    double deadline = deadline_in(timeout_s);
    (void)pthread_mutex_lock(&trainer->lock);
    mpidata_event stop = {.kind = MPIDATA_EVENT_STOP}, goodbye = {.kind = MPIDATA_EVENT_GOODBYE};
    (void)snprintf(stop.text, sizeof stop.text, "its program ended before the stream");
    int status = trainer->finished || trainer->left ? MPIDATA_SUCCESS : mpidata_trainer_post(trainer, &stop);
    trainer->left = 1;
    if (!status) status = mpidata_trainer_post_status(trainer); /* the last, for the summary */
    if (!status) status = mpidata_trainer_post(trainer, &goodbye);
    mpidata_trainer_wake(trainer);
    while (!status && !trainer->thread_done)
        if (!wait_for_news(trainer, deadline)) break;
    int done = trainer->thread_done;
    (void)pthread_mutex_unlock(&trainer->lock);
    MPIDATA_TRY(status);
    if (!done) return mpidata_error(MPIDATA_ERR_AGAIN, "The job did not end within %g s.", timeout_s);
    (void)pthread_join(trainer->thread, NULL);
    mpidata_job_left();
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_free(void) {
    mpidata_trainer *trainer = the_trainer;
    MPIDATA_TRY(need_trainer());
    if (!trainer->thread_done)
        return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_trainer_free: mpidata_trainer_close comes first.");
    the_trainer = NULL;
    mpidata_buffer_close(&trainer->buffer);
    mpidata_record_close(&trainer->record);
    if (!trainer->slots_in_use) mpidata_slots_close(&trainer->slots);
    mpidata_ledger_close(&trainer->ledger);
    (void)pthread_mutex_destroy(&trainer->lock);
    (void)pthread_cond_destroy(&trainer->news);
    (void)pthread_cond_destroy(&trainer->wake);
    free(trainer->arrived);
    free(trainer->validation);
    free(trainer->retired);
    mpidata_pinned_free(trainer->checkpoint.pinned);
    mpidata_job_leave(&trainer->job);
    free(trainer);
    return MPIDATA_SUCCESS;
}

/* -- draw ----------------------------------------------------------------------------------------------------------- */

static int too_small(const mpidata_plan *plan, int64_t least, int64_t count) {
    return mpidata_error(MPIDATA_ERR_ARGUMENT,
                         "buffer.capacity is %lld, but batches of %lld samples need at least %lld%s. Raise "
                         "buffer.capacity in the job file, or lower batch_size.",
                         (long long)plan->capacity, (long long)count, (long long)least,
                         plan->policy == MPIDATA_POLICY_FIRO ? " (buffer.watermark + batch_size)" : "");
}

/* Under the lock: those that a checkpoint had kept, the newest where there is not room for all. */
static void take_over_retired(mpidata_trainer *trainer, int64_t *retired, int64_t room) {
    int64_t n = trainer->n_retired, drop = n > room ? n - room : 0, from = drop ? trainer->next_retired : 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t slot = trainer->retired[(from + i) % n];
        if (i < drop)
            mpidata_slots_give_back(&trainer->slots, slot);
        else
            retired[i - drop] = slot;
    }
    if (drop) trainer->next_retired = 0;
    trainer->n_retired = n - drop;
    free(trainer->retired);
    trainer->retired = retired;
}

/* Only where a batch is what came together, and none of it is kept to be repeated. */
static int hands_out_pages(const mpidata_plan *plan) {
    return plan->policy == MPIDATA_POLICY_FIFO && plan->tail == MPIDATA_TAIL_DROP;
}

int mpidata_trainer_start(int64_t count) {
    mpidata_trainer *trainer = the_trainer;
    MPIDATA_TRY(need_trainer());
    const mpidata_plan *plan = &trainer->job.plan;
    if (count < 1)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "batch_size is %lld. Use 1 or more.", (long long)count);
    int64_t most = INT64_MAX - plan->watermark;
    int64_t least = plan->policy == MPIDATA_POLICY_FIRO && count < most ? plan->watermark + count : count;
    if (plan->capacity < least) {
        (void)too_small(plan, least, count);
        (void)mpidata_report_error_of_trainer(mpidata_last_error());
        return MPIDATA_ERR_ARGUMENT;
    }
    int64_t *retired = calloc((size_t)count, sizeof *retired);
    if (!retired) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for batches of %lld.", (long long)count);
    (void)pthread_mutex_lock(&trainer->lock);
    int status = MPIDATA_SUCCESS;
    if (trainer->batch && trainer->batch != count) {
        status = mpidata_error(MPIDATA_ERR_ORDER, "The stream is drawn in batches of %lld already, not of %lld.",
                               (long long)trainer->batch, (long long)count);
    } else if (!trainer->batch && hands_out_pages(plan) && mpidata_slots_batch(&trainer->slots, count)) {
        status = mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for batches of %lld.", (long long)count);
    } else if (!trainer->batch) {
        trainer->batch = count;
        trainer->past_cache = mpidata_exceeds_cache((size_t)count * plan->slot_bytes);
        take_over_retired(trainer, retired, count);
        retired = NULL;
    }
    mpidata_trainer_wake(trainer);
    (void)pthread_mutex_unlock(&trainer->lock);
    free(retired);
    return status;
}

/* With one trainer there is nobody to agree with. */
static void grant_alone(mpidata_trainer *trainer) {
    if (trainer->job.plan.trainers > 1) return;
    int final;
    trainer->granted = mpidata_trainer_guaranteed(trainer, &final);
    if (final && trainer->job.plan.tail == MPIDATA_TAIL_REPEAT && trainer->buffer.count > 0)
        trainer->granted = trainer->drawn + (trainer->buffer.count + trainer->batch - 1) / trainer->batch;
    if (trainer->stopping || (final && trainer->granted <= trainer->drawn)) trainer->finished = 1;
    if (trainer->stopping) trainer->granted = trainer->drawn;
}

/* Under the lock: a drawn sample's slot stays until `batch` more have been drawn, where the tail may repeat it. */
static void retire(mpidata_trainer *trainer, int64_t slot) {
    if (trainer->job.plan.tail == MPIDATA_TAIL_DROP) {
        mpidata_slots_give_back(&trainer->slots, slot);
        return;
    }
    if (trainer->n_retired < trainer->batch) {
        trainer->retired[trainer->n_retired++] = slot;
        return;
    }
    mpidata_slots_give_back(&trainer->slots, trainer->retired[trainer->next_retired]);
    trainer->retired[trainer->next_retired] = slot;
    trainer->next_retired = (trainer->next_retired + 1) % trainer->batch;
}

typedef struct {
    int64_t number;
    const mpidata_slot *slot;
} drawn_sample;

/* Under the lock: one draw, pinned. */
static drawn_sample draw_one(mpidata_trainer *trainer) {
    int removed = 0;
    drawn_sample drawn;
    int repeat = mpidata_buffer_available(&trainer->buffer) == 0;
    drawn.number = repeat ? trainer->retired[mpidata_random_below(&trainer->buffer.random, trainer->n_retired)]
                          : mpidata_buffer_draw(&trainer->buffer, &removed);
    drawn.slot = trainer->slots.slots[drawn.number];
    trainer->slots.slots[drawn.number]->pins++;
    if (removed) retire(trainer, drawn.number);
    return drawn;
}

static void copy_sample(const mpidata_trainer *trainer, const mpidata_slot *slot, int64_t i, void *const *fields,
                        double *parameters, double *time, int64_t *step, int64_t *simulation) {
    const mpidata_plan *plan = &trainer->job.plan;
    void *(*copy)(void *restrict, const void *restrict, size_t) = trainer->past_cache ? mpidata_copy_past_cache : memcpy;
    for (int f = 0; f < plan->n_fields; f++) {
        size_t bytes = (size_t)plan->fields[f].elements * plan->fields[f].element_size;
        (void)copy((char *)fields[f] + (size_t)i * bytes, mpidata_slot_field(&trainer->slots, slot, f), bytes);
    }
    size_t n = (size_t)plan->n_parameters;
    if (n) memcpy(parameters + (size_t)i * n, slot->parameters, n * sizeof *parameters);
    time[i] = *slot->time;
    step[i] = *slot->step;
    simulation[i] = *slot->simulation;
}

/* Under the lock: MPIDATA_SUCCESS when a batch is granted. */
static int wait_for_grant(mpidata_trainer *trainer, double deadline) {
    for (;;) {
        if (trainer->error) return mpidata_error(trainer->error, "%s", trainer->error_text);
        if (!trainer->batch) return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_trainer_draw before mpidata_trainer_start.");
        grant_alone(trainer);
        if (trainer->left) return MPIDATA_END;
        if (mpidata_checkpoint_is_due(trainer)) return MPIDATA_CHECKPOINT;
        if (trainer->drawn < trainer->granted) return MPIDATA_SUCCESS;
        if (trainer->finished) return MPIDATA_END;
        trainer->waiting = 1;
        int in_time = wait_for_news(trainer, deadline);
        trainer->waiting = 0;
        if (!in_time) return mpidata_error(MPIDATA_ERR_AGAIN, "No batch within the given time.");
    }
}

int mpidata_trainer_ahead(double timeout_s) {
    mpidata_trainer *trainer = the_trainer;
    MPIDATA_TRY(need_trainer());
    (void)pthread_mutex_lock(&trainer->lock);
    int status = wait_for_grant(trainer, deadline_in(timeout_s));
    if (status == MPIDATA_END) trainer->told_end = 1;
    (void)pthread_mutex_unlock(&trainer->lock);
    return status;
}

int mpidata_trainer_draw(void *const *fields, double *parameters, double *time, int64_t *step, int64_t *simulation,
                         double timeout_s) {
    mpidata_trainer *trainer = the_trainer;
    MPIDATA_TRY(need_trainer());
    (void)pthread_mutex_lock(&trainer->lock);
    int status = wait_for_grant(trainer, deadline_in(timeout_s));
    if (status == MPIDATA_END) trainer->told_end = 1;
    int64_t batch = trainer->batch;
    drawn_sample *drawn = status ? NULL : malloc((size_t)batch * sizeof *drawn);
    if (!status && !drawn) status = mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a batch.");
    for (int64_t i = 0; i < batch && !status; i++) drawn[i] = draw_one(trainer);
    if (!status) {
        trainer->drawn++;
        mpidata_trainer_wake(trainer);
    }
    (void)pthread_mutex_unlock(&trainer->lock);
    if (status) {
        free(drawn);
        return status;
    }
    for (int64_t i = 0, pinned = 0; i < batch; i++) {
        copy_sample(trainer, drawn[i].slot, i, fields, parameters, time, step, simulation);
        if (i + 1 < batch && (size_t)(i + 1 - pinned) * trainer->job.plan.slot_bytes < UNPIN_EVERY) continue;
        (void)pthread_mutex_lock(&trainer->lock);
        while (pinned <= i) mpidata_slots_unpin(&trainer->slots, drawn[pinned++].number);
        (void)pthread_mutex_unlock(&trainer->lock);
    }
    free(drawn);
    return MPIDATA_SUCCESS;
}

/* Under the lock: draw the page of the oldest sample, if it is whole, or return NULL. One of its samples may have been
 * completed after some of the next page, which then stay for the next batch. What is pinned is still being written to a
 * file, and must not be changed. */
static mpidata_page *draw_whole_page(mpidata_trainer *trainer) {
    if (!hands_out_pages(&trainer->job.plan) || trainer->buffer.count < trainer->batch) return NULL;
    mpidata_page *page = trainer->slots.slots[mpidata_buffer_at(&trainer->buffer, 0)]->page;
    if (page->layout != &trainer->slots.batch) return NULL;
    for (int64_t i = 0; i < trainer->batch; i++)
        if (page->slots[i].pins) return NULL;
    return mpidata_buffer_draw_together(&trainer->buffer, page->first, trainer->batch, 2 * trainer->batch) ? page : NULL;
}

int mpidata_trainer_draw_page(int64_t bytes, void **memory, int64_t *page, double timeout_s) {
    mpidata_trainer *trainer = the_trainer;
    MPIDATA_TRY(need_trainer());
    *memory = NULL;
    (void)pthread_mutex_lock(&trainer->lock);
    int status = wait_for_grant(trainer, deadline_in(timeout_s));
    if (status == MPIDATA_END) trainer->told_end = 1;
    size_t expected = trainer->slots.batch.bytes;
    if (!status && trainer->slots.batch.count && bytes != (int64_t)expected)
        status = mpidata_error(MPIDATA_ERR_ARGUMENT, "A batch has %zu bytes, not %lld.", expected, (long long)bytes);
    mpidata_page *drawn = status ? NULL : draw_whole_page(trainer);
    if (drawn) {
        trainer->drawn++;
        mpidata_trainer_wake(trainer);
        *memory = drawn->memory;
        *page = drawn->first;
    }
    (void)pthread_mutex_unlock(&trainer->lock);
    return status;
}

int mpidata_trainer_give_back(int64_t page) {
    mpidata_trainer *trainer = the_trainer;
    MPIDATA_TRY(need_trainer());
    (void)pthread_mutex_lock(&trainer->lock);
    for (int64_t i = 0; i < trainer->slots.batch.count; i++) mpidata_slots_give_back(&trainer->slots, page + i);
    (void)pthread_mutex_unlock(&trainer->lock);
    return MPIDATA_SUCCESS;
}

/* -- validation, reports -------------------------------------------------------------------------------------------- */

static int by_simulation_and_step(const void *a, const void *b) {
    const mpidata_slot *one = the_trainer->slots.slots[*(const int64_t *)a];
    const mpidata_slot *other = the_trainer->slots.slots[*(const int64_t *)b];
    if (*one->simulation != *other->simulation) return *one->simulation < *other->simulation ? -1 : 1;
    return *one->step < *other->step ? -1 : *one->step > *other->step;
}

int mpidata_trainer_validation(int64_t *count, double timeout_s) {
    mpidata_trainer *trainer = the_trainer;
    MPIDATA_TRY(need_trainer());
    double deadline = deadline_in(timeout_s);
    int status = MPIDATA_SUCCESS;
    (void)pthread_mutex_lock(&trainer->lock);
    while (!status && !trainer->validation_whole) {
        if (trainer->error)
            status = mpidata_error(trainer->error, "%s", trainer->error_text);
        else if (trainer->stopping)
            status = MPIDATA_END;
        else if (!wait_for_news(trainer, deadline))
            status = mpidata_error(MPIDATA_ERR_AGAIN, "The validation set is not whole yet.");
    }
    if (!status) {
        *count = trainer->n_validation;
        if (trainer->n_validation)
            qsort(trainer->validation, (size_t)trainer->n_validation, sizeof *trainer->validation,
                  by_simulation_and_step);
    }
    (void)pthread_mutex_unlock(&trainer->lock);
    return status;
}

int mpidata_trainer_validation_sample(int64_t index, const void **fields, const double **parameters, double *time,
                                      int64_t *step, int64_t *simulation) {
    mpidata_trainer *trainer = the_trainer;
    MPIDATA_TRY(need_trainer());
    (void)pthread_mutex_lock(&trainer->lock);
    const mpidata_slot *slot = index >= 0 && index < trainer->n_validation
                                   ? trainer->slots.slots[trainer->validation[index]]
                                   : NULL;
    (void)pthread_mutex_unlock(&trainer->lock);
    if (!slot)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "There is no validation sample %lld.", (long long)index);
    for (int f = 0; f < trainer->job.plan.n_fields; f++) fields[f] = mpidata_slot_field(&trainer->slots, slot, f);
    *parameters = slot->parameters;
    *time = *slot->time;
    *step = *slot->step;
    *simulation = *slot->simulation;
    return MPIDATA_SUCCESS;
}

static int post_now(mpidata_event *event, const char *text) {
    mpidata_trainer *trainer = the_trainer;
    (void)snprintf(event->text, sizeof event->text, "%s", text ? text : "");
    (void)pthread_mutex_lock(&trainer->lock);
    int status = mpidata_trainer_post(trainer, event);
    if (event->kind == MPIDATA_EVENT_STOP) trainer->left = 1;
    mpidata_trainer_wake(trainer);
    (void)pthread_mutex_unlock(&trainer->lock);
    return status;
}

int mpidata_trainer_report(const char *name, double value) {
    MPIDATA_TRY(need_trainer());
    mpidata_event event = {.kind = MPIDATA_EVENT_REPORT, .value = value};
    return post_now(&event, name);
}

int mpidata_trainer_stop(int failed, const char *reason) {
    MPIDATA_TRY(need_trainer());
    mpidata_event event = {.kind = MPIDATA_EVENT_STOP, .failed = failed};
    return post_now(&event, reason);
}

int mpidata_trainer_steps(int64_t *steps) {
    mpidata_trainer *trainer = the_trainer;
    MPIDATA_TRY(need_trainer());
    (void)pthread_mutex_lock(&trainer->lock);
    *steps = mpidata_ledger_steps(&trainer->ledger);
    (void)pthread_mutex_unlock(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_statistics(mpidata_statistics *statistics) {
    mpidata_trainer *trainer = the_trainer;
    MPIDATA_TRY(need_trainer());
    (void)pthread_mutex_lock(&trainer->lock);
    *statistics = mpidata_trainer_statistics_now(trainer);
    (void)pthread_mutex_unlock(&trainer->lock);
    return MPIDATA_SUCCESS;
}
