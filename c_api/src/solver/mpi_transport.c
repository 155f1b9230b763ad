#include "solver/solver.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/beat.h"
#include "base/deadlines.h"
#include "base/wait.h"
#include "calls/calls.h"
#include "job/usage.h"
#include "program/single_run.h"
#include "program/caller.h"
#include "solver/asking/infer_by_mpi.h"
#include "solver/kept_constants.h"
#include "solver/map_sending.h"
#include "solver/refresh.h"
#include "solver/sender.h"
#include "solver/tally.h"
#include "stream/state.h"
#include "wire/identity.h"

static const double LISTEN_EVERY_S = 5e-5, LISTEN_WAITING_S = 0.1;

/* One solver per process, as there is one MPI_COMM_WORLD. */
static struct {
    mpidata_job job;
    mpidata_sender sender;
    mpidata_refreshing refreshing;
    MPI_Comm group;
    int group_size;
    double listened; /* when the scheduler was last listened to; s */
    double since;    /* when the previous simulation was closed; s */
    double next_s, start_s; /* of the time since then: wait for a simulation; from its start to the end of its first step */
    int validation;
    char reason[512];
    mpidata_task *task;
    size_t task_bytes;
    int awaits_task; /* MPI will write one there */
    int gave_up;     /* this rank, of several, leaves because nobody answers it, which the others do not know yet */
    mpidata_tally tally;
} solver = {.group = MPI_COMM_NULL};

static int in_job(void) { return mpidata_calls.state == MPIDATA_JOINED && !mpidata_calls.alone; }

static void who(char *text, size_t size) { mpidata_job_who(&solver.job, text, size); }

static int send_error(const char *sentence) {
    mpidata_event event = {.kind = MPIDATA_EVENT_ERROR};
    (void)snprintf(event.text, sizeof event.text, "%s", sentence);
    return mpidata_job_send_event(&solver.job, &event);
}

static void report(const char *sentence) {
    const struct timespec moment = {.tv_sec = MPIDATA_AFTER_ERROR_MS / 1000};
    (void)send_error(sentence);
    (void)nanosleep(&moment, NULL);
}

int mpidata_report_error(const char *sentence) {
    MPIDATA_CALLED;
    if (mpidata_job_forked()) return mpidata_job_refuse_forked();
    return in_job() ? send_error(sentence) : mpidata_report_error_of_trainer(sentence);
}

/* Whether this rank, the first of its group, was told that the current try is no longer needed. The message may come before the
 * task, or after the group has closed it. */
static int told_to_cancel(void) {
    return mpidata_calls.running && solver.job.cancelled.by_try == solver.task->by_try &&
           solver.job.cancelled.simulation == mpidata_calls.simulation;
}

/* A group that has lost a rank, or that the scheduler has given up, cannot continue: another one takes over its simulation. */
static int settle(int status) {
    if (status == MPIDATA_ERR_DIED) mpidata_job_end_rank();
    if (solver.group_size == 1 && told_to_cancel()) mpidata_calls.cancelled = 1; /* others agree on it */
    mpidata_beat();
    return status;
}

/* A peer's death must not end the whole job, as MPI's default handler would. */
static void group_failed(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    if (mpidata_check_mpi(*code, "on the group's communicator") == MPIDATA_ERR_DIED) mpidata_job_end_rank();
    (void)fprintf(stderr, "mpidata: %s This rank ends.\n", mpidata_last_error());
    _exit(1);
}

/* -- put, step ------------------------------------------------------------------------------------------------------ */

/* A step that cannot be sent completely ends the job: the trainers would wait for the rest of it. */
static int cannot_send(int status) {
    if (status == MPIDATA_ERR_BLOCK) return mpidata_calls_misuse(status, "Put larger blocks, several of these at once.");
    if (status == MPIDATA_ERR_MEMORY) return mpidata_calls_misuse(status, "Lower solvers.in_flight in the job file.");
    return status;
}

static int stage(const mpidata_block *block, const mpidata_put_arguments *put, int lend) {
    if (solver.job.plan.fields[block->field].per_simulation) MPIDATA_TRY(mpidata_kept_constants_begin(&solver.sender));
    if (put->by_map || put->local)
        return cannot_send(mpidata_stage_mapped(&solver.sender, block, put, lend, mpidata_calls.step));
    return cannot_send(mpidata_sender_stage(&solver.sender, block, put, lend));
}

static int wait_for_lent(const void *values) {
    return values ? mpidata_sender_wait_for(&solver.sender, values) : mpidata_sender_drain(&solver.sender, 1);
}

static void drop(void) {
    mpidata_sender_drop(&solver.sender);
    mpidata_release_put(&solver.sender, INT64_MAX);
}

static int64_t missing_row(int64_t step, int field, int64_t put, int64_t rows) {
    return mpidata_missing_row(&solver.sender, step, field, put, rows);
}

static void forget(const mpidata_map *map) { mpidata_forget_map(&solver.sender, map); }

/* Not in each of many short steps: a call of MPI that finds nothing may yield the core. */
static int listen_again(void) {
    double now = mpidata_now();
    if (now - solver.listened < LISTEN_EVERY_S) return MPIDATA_SUCCESS;
    solver.listened = now;
    return mpidata_job_listen(&solver.job);
}

/* The program is not at fault if a simulation diverges: it is tried again. */
static int fail_here(double time) {
    (void)snprintf(solver.reason, sizeof solver.reason, "made step %lld at the time %g", (long long)mpidata_calls.step, time);
    mpidata_sender_drop(&solver.sender);
    mpidata_calls_empty_step();
    mpidata_calls.failed = MPIDATA_TRY_FAILED;
    mpidata_calls.lame = solver.group_size > 1 ? MPIDATA_LAME_HERE : MPIDATA_LAME_ALL;
    return mpidata_calls_not_finite();
}

/* All ranks learn of it in the same agreement, and start no other one in this simulation. If only some had such a time, or at
 * different steps, the trainers have parts of a sample, which are dropped with the group. */
static void fail_all(int together) {
    static const char HOW[] = "raised a time that is not finite";
    char who[128];
    mpidata_job_who(&solver.job, who, sizeof who);
    (void)mpidata_error(MPIDATA_ERR_ARGUMENT, "%s, simulation %lld, step %lld, %s", who, (long long)mpidata_calls.simulation,
                        (long long)mpidata_calls.step, mpidata_calls.lame ? HOW : "ends with its group.");
    if (!together && !mpidata_calls.lame) mpidata_job_end_rank();
    if (!together) (void)fprintf(stderr, "mpidata: %s\n", mpidata_last_error());
    if (!together) mpidata_beat_at(HOW);
    if (!together) _exit(1);
    mpidata_calls.failed = MPIDATA_TRY_FAILED;
    mpidata_calls.lame = MPIDATA_LAME_ALL;
}

/* If one rank makes a step and another ends the simulation, each would wait for the other forever. */
static int check_together(void) {
    const mpidata_tally *tally = &solver.tally;
    const int64_t closing = tally->closing, steps = mpidata_calls.step;
    if (!closing || (closing == solver.group_size && tally->closed_at == closing * steps)) return MPIDATA_SUCCESS;
    (void)mpidata_error(MPIDATA_ERR_ORDER,
                        "The ranks of a group make different numbers of steps: %lld of %d ended the simulation together, this one %s "
                        "%lld",
                        (long long)closing, solver.group_size, tally->closes ? "after" : "went on after", (long long)steps);
    return mpidata_calls_misuse(MPIDATA_ERR_ORDER, "Call mpidata_step, and mpidata_fail, equally often on all ranks of a group.");
}

/* The group agrees on its last steps while the next ones are computed. Only rank 0 of the group reports a stop, or a cancel, so
 * that all ranks leave at the same step. A rank that has given up a question also does, perhaps while others make steps: all
 * its calls return MPIDATA_END, so it makes no further step, and closes the simulation. There it takes part in the others' next
 * agreement, whose steps are incomplete without this rank: the trainers drop them, as all data of a job that stops. */
static int finish_tally(void) {
    mpidata_tally *tally = &solver.tally;
    if (!tally->under_way) return MPIDATA_SUCCESS;
    MPIDATA_TRY(mpidata_wait_request(&tally->request, MPI_STATUS_IGNORE, mpidata_sender_wait, &solver.sender));
    int64_t failed, at;
    const int stop = mpidata_tally_finish(tally, &failed, &at);
    if (stop) mpidata_calls.stopping = 1;
    if (stop) solver.gave_up = 0;
    if (failed) fail_all(failed == solver.group_size && at == failed * mpidata_calls.step);
    if (failed) return MPIDATA_SUCCESS;
    if (!stop) MPIDATA_TRY(check_together());
    const int tells = solver.job.rank_in_group == 0;
    for (int i = 0; i < tally->agreed && !(stop && tally->closing); i++)
        MPIDATA_TRY(mpidata_calls_check_cover(tally->sum + i * tally->n_counts, tally->first + i, tells));
    mpidata_release_put(&solver.sender, tally->first + tally->agreed);
    return MPIDATA_SUCCESS;
}

/* All ranks leave a cancelled simulation in the same step, or when they end it, not in a call that only some of them make
 * after a refresh: the others would wait for these in calls of MPI. */
static int leave_cancelled(void) {
    if (solver.tally.cancelled) mpidata_calls.cancelled = 1;
    return mpidata_calls.cancelled;
}

static int start_tally(int64_t last, int closes) {
    int leads = solver.job.rank_in_group == 0;
    const int64_t failed_at = mpidata_calls.lame == MPIDATA_LAME_HERE ? mpidata_calls.step : -1;
    const int stop = (leads && solver.job.told_to_stop) || solver.gave_up;
    return mpidata_tally_start(&solver.tally, solver.job.role, last, stop, leads && told_to_cancel(), failed_at, closes, leads);
}

static int commit(double time) {
    if (solver.job.plan.n_constants)
        MPIDATA_TRY(cannot_send(mpidata_kept_constants_send(&solver.sender, mpidata_calls.simulation, mpidata_calls.step,
                                                            solver.validation, solver.task->parameters)));
    MPIDATA_TRY(cannot_send(mpidata_send_maps(&solver.sender, mpidata_calls.simulation, mpidata_calls.step, solver.validation)));
    MPIDATA_TRY(cannot_send(mpidata_sender_commit(&solver.sender, mpidata_calls.simulation, mpidata_calls.step, time,
                                                  solver.validation, solver.task->parameters)));
    mpidata_calls_empty_step();
    if (mpidata_calls.step++) return MPIDATA_SUCCESS;
    mpidata_withdraw(MPIDATA_PULSE_STARTING);
    solver.start_s = mpidata_now() - solver.since - solver.next_s - solver.sender.waited;
    return MPIDATA_SUCCESS;
}

static int step_of_one(double time) {
    if (!mpidata_is_finite(time)) return fail_here(time);
    MPIDATA_TRY(listen_again());
    if (solver.job.told_to_stop) mpidata_calls.stopping = 1;
    if (mpidata_calls.stopping) return MPIDATA_END;
    if (told_to_cancel()) return MPIDATA_CANCELLED;
    MPIDATA_TRY(mpidata_calls_check_cover(mpidata_calls.counts, mpidata_calls.step, 1));
    mpidata_release_put(&solver.sender, mpidata_calls.step + 1);
    return commit(time);
}

static int step_of_many(double time) {
    MPIDATA_TRY(listen_again());
    if (leave_cancelled()) return MPIDATA_CANCELLED;
    if (!mpidata_is_finite(time)) (void)fail_here(time); /* the others learn of it when this rank closes the simulation */
    if (!mpidata_tally_add(&solver.tally, mpidata_calls.counts) && !mpidata_calls.lame) return commit(time);
    if (mpidata_calls.lame) return MPIDATA_ERR_ARGUMENT;
    MPIDATA_TRY(finish_tally());
    if (mpidata_calls.stopping) return MPIDATA_END;
    if (mpidata_calls.lame) return mpidata_calls_not_finite();
    if (leave_cancelled()) return MPIDATA_CANCELLED;
    MPIDATA_TRY(start_tally(mpidata_calls.step, 0));
    return commit(time);
}

static int step(double time) { return solver.group_size > 1 ? step_of_many(time) : step_of_one(time); }

/* -- refresh -------------------------------------------------------------------------------------------------------- */

/* The group first agrees whether to stop, or to abandon the simulation: all its ranks return the same. A cancelled simulation
 * does not matter here: the next step reports it. */
static int refresh(void) {
    MPIDATA_TRY(listen_again());
    if (solver.group_size > 1) {
        MPIDATA_TRY(finish_tally());
        if (mpidata_calls.cancelled) solver.tally.steps = 0;
        if (!mpidata_calls.lame && !mpidata_calls.stopping) {
            MPIDATA_TRY(start_tally(mpidata_calls.step - 1, 0));
            MPIDATA_TRY(finish_tally());
        }
    } else {
        if (solver.job.told_to_stop) mpidata_calls.stopping = 1;
        if (told_to_cancel()) mpidata_calls.cancelled = 1;
    }
    if (mpidata_calls.stopping) return MPIDATA_END;
    if (mpidata_calls.lame) return mpidata_calls_not_finite();
    const int status = mpidata_refreshing_do(&solver.refreshing, solver.job.role, solver.group_size);
    if (status == MPIDATA_ERR_WIRE) return mpidata_calls_misuse(status, "Use one build of libmpidata for the whole job.");
    return status == MPIDATA_ERR_MEMORY ? mpidata_calls_misuse(status, "Publish less, or give solvers more memory.") : status;
}

static const mpidata_contents *published(void) { return solver.refreshing.held; }

/* -- next, fail, finalize ------------------------------------------------------------------------------------------- */

static int64_t microseconds(double seconds) { return seconds > 0 ? (int64_t)(1e6 * seconds) : 0; }

/* How the time since the previous simulation was spent. Rounded down, the parts do not exceed the whole. */
static void tell_times(mpidata_event *event) {
    double now = mpidata_now();
    event->closed.next_us = microseconds(solver.next_s);
    event->closed.start_us = microseconds(solver.start_s);
    event->closed.room_us = microseconds(solver.sender.waited);
    event->closed.total_us = microseconds(now - solver.since) + 3;
    event->closed.usage = mpidata_usage_now();
    solver.since = now;
    solver.next_s = solver.start_s = solver.sender.waited = 0.0;
}

static int complete(void) {
    MPIDATA_TRY(mpidata_infer_settle(&solver.sender));
    MPIDATA_TRY(finish_tally());
    const int stops = mpidata_calls.stopping && !solver.gave_up;
    const int agreed = leave_cancelled() || mpidata_calls.lame == MPIDATA_LAME_ALL || stops;
    if (solver.group_size > 1 && mpidata_calls.running && !agreed) {
        MPIDATA_TRY(start_tally(mpidata_calls.step - 1, 1));
        MPIDATA_TRY(finish_tally());
    }
    if (leave_cancelled() || mpidata_calls.lame) solver.tally.steps = 0;
    solver.tally.cancelled = 0;
    return mpidata_sender_flush(&solver.sender);
}

/* The event for the scheduler about the simulation that ends here. */
static mpidata_event event_of(const mpidata_done *done, int kind) {
    mpidata_event event = {.kind = kind};
    event.closed.simulation = done->simulation;
    event.closed.steps = done->steps;
    event.closed.failed = done->failed;
    (void)snprintf(event.text, sizeof event.text, "%s", done->failed ? solver.reason : "");
    tell_times(&event);
    return event;
}

/* With nothing in flight, only a simulation, or the loss of the group or the scheduler, can come. */
static int listen_or_send(void *sender) {
    const double now = mpidata_now();
    if (!solver.sender.flight.n && now - solver.listened < LISTEN_WAITING_S) return MPIDATA_SUCCESS;
    solver.listened = now;
    return mpidata_sender_wait(sender);
}

/* A spare group may wait for hours: this must cost nothing, unless it still has messages in flight. */
static int wait_for_task(MPI_Request *request, MPI_Status *status) {
    return mpidata_wait_long(request, status, listen_or_send, &solver.sender, &solver.sender.flight.n);
}

static int ask_scheduler(mpidata_event *event) {
    MPI_Request request;
    MPIDATA_TRY_MPI(MPI_Irecv(solver.task, (int)solver.task_bytes, MPI_BYTE, 0, MPIDATA_TAG_TASK, solver.job.data,
                              &request));
    MPIDATA_TRY(mpidata_job_send_event(&solver.job, event));
    MPI_Status came;
    int bytes = 0;
    MPIDATA_TRY(wait_for_task(&request, &came));
    MPIDATA_TRY_MPI(MPI_Get_count(&came, MPI_BYTE, &bytes));
    return mpidata_task_fits(&solver.job.plan, solver.task, bytes);
}

/* Send steps to the trainers that train now. */
static int note_changes(void) {
    mpidata_plan *plan = &solver.job.plan;
    const int32_t *changes = mpidata_task_changes(plan, solver.task);
    while (plan->n_changes < *changes)
        if (mpidata_plan_change_by(plan, changes[1 + plan->n_changes]))
            return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in mpidata_next.");
    return MPIDATA_SUCCESS;
}

static int next(const mpidata_done *done, int64_t *simulation) {
    mpidata_event event = event_of(done, MPIDATA_EVENT_NEXT);
    solver.awaits_task = 1;
    if (solver.job.rank_in_group == 0) MPIDATA_TRY(ask_scheduler(&event));
    if (solver.group_size > 1) {
        MPI_Request request;
        MPIDATA_TRY_MPI(MPI_Ibcast(solver.task, (int)solver.task_bytes, MPI_BYTE, 0, solver.job.role, &request));
        MPIDATA_TRY(wait_for_task(&request, MPI_STATUS_IGNORE));
    }
    solver.awaits_task = 0;
    solver.next_s = mpidata_now() - solver.since;
    MPIDATA_TRY(mpidata_task_check(&solver.job.plan, solver.task));
    if (solver.task->kind != MPIDATA_TASK_RUN) return MPIDATA_END;
    if (solver.job.plan.trainers_at_least) MPIDATA_TRY(note_changes());
    *simulation = solver.task->simulation;
    solver.validation = solver.task->validation;
    solver.sender.by_try = solver.task->by_try;
    solver.sender.tag = solver.task->validation ? MPIDATA_TAG_VALIDATION : MPIDATA_TAG_SAMPLE;
    mpidata_tell(MPIDATA_PULSE_STARTING);
    return MPIDATA_SUCCESS;
}

static int fail(const char *reason, int how) {
    (void)how; /* the scheduler learns of it when the simulation is closed */
    MPIDATA_TRY(finish_tally());
    (void)leave_cancelled();
    (void)snprintf(solver.reason, sizeof solver.reason, "%s", reason);
    return MPIDATA_SUCCESS;
}

static int leave(const mpidata_done *done) {
    const mpidata_event event = event_of(done, MPIDATA_EVENT_FINALIZED);
    MPIDATA_TRY(mpidata_sender_drain(&solver.sender, 0));
    MPIDATA_TRY(mpidata_wait_all_here(solver.job.role));
    return solver.job.rank_in_group == 0 ? mpidata_job_send_event(&solver.job, &event) : MPIDATA_SUCCESS;
}

static void close_all(void) {
    int finalized = 0;
    (void)MPI_Finalized(&finalized);
    if (!finalized && solver.group != MPI_COMM_NULL) (void)MPI_Comm_free(&solver.group);
    if (in_job()) {
        mpidata_infer_close();
        mpidata_refreshing_close(&solver.refreshing);
        mpidata_forget_nothing(&solver.sender);
        mpidata_sender_close(&solver.sender);
        mpidata_job_leave(&solver.job);
        mpidata_job_left();
    }
    if (!solver.awaits_task) free(solver.task); /* else, after an error, MPI still uses it */
    mpidata_tally_close(&solver.tally);
    solver.task = NULL;
}

static int ask(const mpidata_array *in, int n_in, const mpidata_array *out, int n_out, int64_t *version, int64_t *question) {
    return mpidata_infer_ask(&solver.sender, in, n_in, out, n_out, version, question);
}

/* In a group of several, only this rank has given up, as far as it knows. */
static int answer(int64_t question) {
    const int status = mpidata_infer_answer(&solver.sender, question);
    if (status == MPIDATA_END && !mpidata_calls.stopping) mpidata_calls.stopping = solver.gave_up = solver.group_size > 1;
    return status;
}

static const mpidata_transport BY_MPI = {
    .forked = mpidata_job_forked, .refuse_forked = mpidata_job_refuse_forked, .who = who, .settle = settle, .report = report,
    .stage = stage, .wait = wait_for_lent, .step = step, .drop = drop, .missing_row = missing_row, .forget = forget, .complete = complete, .next = next, .fail = fail,
    .ask = ask, .answer = answer, .leave = leave, .close = close_all, .refresh = refresh, .published = published,
};

/* -- join ----------------------------------------------------------------------------------------------------------- */

static int open_group(MPI_Comm from, MPI_Comm *group) {
    MPI_Errhandler handler;
    MPIDATA_TRY_MPI(MPI_Comm_dup(from, &solver.group));
    MPIDATA_TRY_MPI(MPI_Comm_size(solver.group, &solver.group_size));
    MPIDATA_TRY_MPI(MPI_Comm_create_errhandler(group_failed, &handler));
    MPIDATA_TRY_MPI(MPI_Comm_set_errhandler(solver.group, handler));
    MPIDATA_TRY_MPI(MPI_Errhandler_free(&handler));
    *group = solver.group;
    return MPIDATA_SUCCESS;
}

static int open_memory(void) {
    const mpidata_plan *plan = &solver.job.plan;
    solver.task_bytes = mpidata_task_bytes(plan);
    solver.task = calloc(1, solver.task_bytes);
    if (!solver.task) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in mpidata_init.");
    MPIDATA_TRY(mpidata_tally_open(&solver.tally, mpidata_plan_counts(plan)));
    MPIDATA_TRY(mpidata_sender_open(&solver.sender, &solver.job));
    mpidata_refreshing_open(&solver.refreshing, &solver.sender);
    return MPIDATA_SUCCESS;
}

/* Called first by MPI_Finalize, which would wait forever if the scheduler waits for this rank. */
static int forgot_to_finalize(MPI_Comm comm, int key, void *value, void *state) {
    (void)comm, (void)key, (void)value, (void)state;
    if (mpidata_job_forked()) _exit(0);
    if (mpidata_calls.state != MPIDATA_JOINED || mpidata_calls.broken) return MPI_SUCCESS;
    (void)mpidata_error(MPIDATA_ERR_ORDER, "MPI_Finalize was called before mpidata_finalize");
    mpidata_calls.broken = mpidata_calls_misuse(MPIDATA_ERR_ORDER, "Call mpidata_finalize at the end of the solver.");
    return MPI_SUCCESS;
}

static int join_alone(MPI_Comm world, MPI_Comm *group) {
    int rank = 1;
    MPIDATA_TRY_MPI(MPI_Comm_rank(world, &rank));
    if (rank == 0) mpidata_alone_say_so();
    MPIDATA_TRY(open_group(world, group));
    MPIDATA_TRY(mpidata_calls_begin(&BY_MPI, NULL, NULL));
    return mpidata_job_at_finalize(forgot_to_finalize);
}

static int join(MPI_Comm world, MPI_Comm *group) {
    int initialized = 0, finalized = 0;
    if (!group) return mpidata_error(MPIDATA_ERR_ARGUMENT, "mpidata_init: group is NULL. Pass the address of an MPI_Comm.");
    MPIDATA_TRY(mpidata_check_identity());
    MPIDATA_TRY_MPI(MPI_Initialized(&initialized));
    MPIDATA_TRY_MPI(MPI_Finalized(&finalized));
    if (!initialized || finalized)
        return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_init: MPI is not initialised. Call MPI_Init first.");
    MPIDATA_TRY(mpidata_calls_may_join());
    const int alone = !mpidata_in_job();
    if (alone && getenv("MPIDATA_CARRIER"))
        return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_init: the job carries this program (solvers.carried), which is linked "
                                                "with libmpidata. Link it with libmpidata_carried and call mpidata_attach: "
                                                "mpidata config --carried. Or remove 'carried' from the job file.");
    if (alone) return join_alone(world, group);
    MPIDATA_TRY(mpidata_job_join(world, MPIDATA_ROLE_SOLVER, NULL, &solver.job));
    MPIDATA_TRY(open_memory());
    MPIDATA_TRY(open_group(solver.job.role, group));
    MPIDATA_TRY(mpidata_calls_begin(&BY_MPI, &solver.job.plan, solver.task->parameters));
    solver.since = mpidata_now();
    MPIDATA_TRY(mpidata_job_at_finalize(forgot_to_finalize));
    if (*mpidata_calls_early_error()) {
        (void)mpidata_error(MPIDATA_ERR_ORDER, "%s", mpidata_calls_early_error());
        return mpidata_calls_misuse(MPIDATA_ERR_ORDER, "It happened before mpidata_init.");
    }
    return MPIDATA_SUCCESS;
}

int mpidata_init(MPI_Comm world, MPI_Comm *group) {
    MPIDATA_CALLED;
    int status = join(world, group);
    if (status) (void)fprintf(stderr, "mpidata: %s\n", mpidata_last_error());
    return status;
}

int mpidata_init_f(MPI_Fint world, MPI_Fint *group) {
    MPI_Comm comm = MPI_COMM_NULL;
    int status = mpidata_init(MPI_Comm_f2c(world), &comm);
    *group = MPI_Comm_c2f(comm);
    return status;
}

/* -- mpidata-carrier ------------------------------------------------------------------------------------------------ */

int mpidata_solver_look(int *stopping, int *under_way) {
    int status = settle(mpidata_sender_wait(&solver.sender));
    if (solver.job.told_to_stop) mpidata_calls.stopping = 1;
    *stopping = mpidata_calls.stopping;
    *under_way = solver.sender.flight.n > 0;
    return status;
}

void mpidata_solver_meanwhile(int (*call)(void *), void *context) {
    solver.sender.meanwhile = call;
    solver.sender.of = context;
}

mpidata_questions *mpidata_solver_questions(int most) { return mpidata_questions_open(&solver.job, most); }
void mpidata_solver_has_waited(double seconds) { solver.sender.waited += seconds; }
void mpidata_solver_stop(void) { mpidata_calls.stopping = 1; }
int mpidata_solver_lends(const void *values) { return mpidata_sender_lends(&solver.sender, values); }
const double *mpidata_solver_parameters(void) { return solver.task->parameters; }
int64_t mpidata_solver_try(void) { return solver.task->by_try; }
const mpidata_plan *mpidata_solver_plan(void) { return &solver.job.plan; }

int mpidata_solver_who(char *text, size_t size) {
    mpidata_job_who(&solver.job, text, size);
    return solver.job.index;
}
