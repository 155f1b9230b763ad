#include "solver/solver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/beat.h"
#include "base/deadlines.h"
#include "base/wait.h"
#include "job/usage.h"
#include "program/alone.h"
#include "program/caller.h"
#include "solver/sender.h"
#include "solver/tally.h"
#include "stream/state.h"
#include "wire/identity.h"
#include "wire/put_check.h"

enum { OUTSIDE = 0, JOINED, LEFT, LAME_HERE = 1, LAME_ALL };
static const char NOT_FINITE[] = "mpidata_step: the time is not finite: this try of the simulation has failed. Call mpidata_next.";
static const double LISTEN_EVERY_S = 5e-5, PATIENT_S = 1.0;

/* One solver per process, as there is one MPI_COMM_WORLD. */
static struct {
    int state;
    int alone;
    mpidata_job job;
    mpidata_sender sender;
    MPI_Comm group;
    int group_size;
    int running;    /* between next and the close of its simulation */
    int failed;     /* MPIDATA_GIVEN_UP or MPIDATA_TRY_FAILED: mpidata_fail, or mpidata_fail_try, was called */
    int lame;       /* the time was not finite: calls fail until next. LAME_HERE: no other rank knows yet */
    int broken;     /* status of a misuse: the job ends with it, nothing is sent any more */
    int stopping;   /* the scheduler told the group to leave */
    int no_more;    /* next has returned MPIDATA_END */
    double listened; /* to the scheduler, last; s */
    double asked;    /* for a simulation, last; s */
    double since;    /* the simulation before was closed; s */
    double next_s, start_s; /* of the time since then: waited for a simulation, and in it until its first step was over */
    int64_t simulation, step;
    int validation;
    char reason[512];
    mpidata_task *task;
    size_t task_bytes;
    int awaits_task; /* MPI is to write one there */
    int64_t *elements; /* per field, put by this rank in the present step */
    mpidata_tally tally;
} solver = {.group = MPI_COMM_NULL};

/* Add the place to the last error, tell the scheduler, which ends the job, and return the status. */
static int misuse(int status, const char *advice) {
    char text[MPIDATA_TEXT_MAX], who[128];
    (void)snprintf(text, sizeof text, "%s", mpidata_last_error());
    if (solver.state != JOINED) {
        (void)mpidata_error(status, "%.1500s. %s", text, advice);
        mpidata_remember_early_error();
    } else if (solver.alone) {
        (void)mpidata_error(status, "%.1500s. Step %lld. %s", text, (long long)solver.step, advice);
        (void)fprintf(stderr, "mpidata: %s\n", mpidata_last_error());
    } else {
        mpidata_job_who(&solver.job, who, sizeof who);
        (void)mpidata_error(status, "%.1500s. %s, simulation %lld, step %lld. %s", text, who,
                            (long long)solver.simulation, (long long)solver.step, advice);
        if (!solver.broken) {
            solver.broken = status;
            (void)mpidata_report_error(mpidata_last_error());
            const struct timespec moment = {.tv_sec = MPIDATA_AFTER_ERROR_MS / 1000};
            (void)nanosleep(&moment, NULL);
        }
    }
    return status;
}

int mpidata_report_error(const char *sentence) {
    MPIDATA_CALLED;
    if (mpidata_job_forked()) return mpidata_job_refuse_forked();
    if (solver.state != JOINED || solver.alone) return mpidata_report_error_of_trainer(sentence);
    mpidata_event event = {.kind = MPIDATA_EVENT_ERROR};
    (void)snprintf(event.text, sizeof event.text, "%s", sentence);
    return mpidata_job_send_event(&solver.job, &event);
}

static void end_this_rank(void) {
    mpidata_tell(MPIDATA_PULSE_LOST);
    (void)fprintf(stderr, "mpidata: %s This rank ends.\n", mpidata_last_error());
    _exit(1);
}

/* Every call ends here. A group that has lost a rank, or that the scheduler has given up, cannot go on: another one takes
 * its simulation over. */
static int settle(int status) {
    if (status == MPIDATA_ERR_DIED && solver.state == JOINED && !solver.alone) end_this_rank();
    mpidata_beat();
    return status;
}

/* A peer's death must not end the whole job, as MPI's default handler would. */
static void group_failed(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    if (mpidata_check_mpi(*code, "on the group's communicator") == MPIDATA_ERR_DIED) end_this_rank();
    (void)fprintf(stderr, "mpidata: %s This rank ends.\n", mpidata_last_error());
    _exit(1);
}

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
    solver.task_bytes = sizeof *solver.task + (size_t)plan->n_parameters * sizeof(double);
    solver.task = calloc(1, solver.task_bytes);
    solver.elements = calloc((size_t)plan->n_fields, sizeof(int64_t));
    if (!solver.task || !solver.elements) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in mpidata_init.");
    MPIDATA_TRY(mpidata_tally_open(&solver.tally, plan->n_fields));
    return mpidata_sender_open(&solver.sender, &solver.job);
}

/* Called first by MPI_Finalize, which would wait for ever where the scheduler waits for this rank. */
static int forgot_to_finalize(MPI_Comm comm, int key, void *value, void *state) {
    (void)comm, (void)key, (void)value, (void)state;
    if (mpidata_job_forked()) _exit(0);
    if (solver.state != JOINED || solver.alone || solver.broken) return MPI_SUCCESS;
    (void)mpidata_error(MPIDATA_ERR_ORDER, "MPI_Finalize was called before mpidata_finalize");
    (void)misuse(MPIDATA_ERR_ORDER, "Call mpidata_finalize at the end of the solver.");
    return MPI_SUCCESS;
}

static int join(MPI_Comm world, MPI_Comm *group) {
    int initialized = 0, finalized = 0;
    if (!group) return mpidata_error(MPIDATA_ERR_ARGUMENT, "mpidata_init: group is NULL. Pass the address of an MPI_Comm.");
    MPIDATA_TRY(mpidata_check_identity());
    MPIDATA_TRY_MPI(MPI_Initialized(&initialized));
    MPIDATA_TRY_MPI(MPI_Finalized(&finalized));
    if (!initialized || finalized)
        return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_init: MPI is not initialised. Call MPI_Init before.");
    if (solver.state != OUTSIDE)
        return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_init: called a second time. Call it once per program.");
    solver.alone = !mpidata_in_job();
    if (solver.alone && getenv("MPIDATA_CARRIER"))
        return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_init: the job carries this program (solvers.carried), which is linked "
                                                "with libmpidata. Link it with libmpidata_carried and call mpidata_attach: "
                                                "mpidata config --carried. Or remove 'carried' from the job file.");
    if (solver.alone) {
        int rank = 1;
        MPIDATA_TRY_MPI(MPI_Comm_rank(world, &rank));
        if (rank == 0) mpidata_alone_say_so();
        MPIDATA_TRY(open_group(world, group));
        solver.state = JOINED;
        return MPIDATA_SUCCESS;
    }
    MPIDATA_TRY(mpidata_job_join(world, MPIDATA_ROLE_SOLVER, NULL, &solver.job));
    MPIDATA_TRY(open_memory());
    MPIDATA_TRY(open_group(solver.job.role, group));
    solver.state = JOINED;
    solver.simulation = -1;
    solver.since = mpidata_now();
    MPIDATA_TRY(mpidata_job_at_finalize(forgot_to_finalize));
    if (*mpidata_early_error()) {
        (void)mpidata_error(MPIDATA_ERR_ORDER, "%s", mpidata_early_error());
        return misuse(MPIDATA_ERR_ORDER, "It happened before mpidata_init.");
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

static int need_simulation(const char *call) {
    if (solver.state != JOINED) {
        (void)mpidata_error(MPIDATA_ERR_ORDER, "%s was called %s", call,
                            solver.state == LEFT ? "after mpidata_finalize" : "before mpidata_init");
        return misuse(MPIDATA_ERR_ORDER, "Call mpidata_init, then mpidata_next, first.");
    }
    if (solver.broken) return solver.broken;
    if (solver.lame) return mpidata_error(MPIDATA_ERR_ARGUMENT, "%s", NOT_FINITE);
    if (solver.running && !solver.failed) return MPIDATA_SUCCESS;
    (void)mpidata_error(MPIDATA_ERR_ORDER, "%s was called %s", call,
                        solver.failed ? "after mpidata_fail" : "outside a simulation");
    return misuse(MPIDATA_ERR_ORDER, "Call mpidata_next first.");
}

static int need_parameters(const char *call, const void *name, const void *value) {
    if (mpidata_job_forked()) return mpidata_job_refuse_forked();
    if (!name || !value) return mpidata_error(MPIDATA_ERR_ARGUMENT, "%s: a pointer is NULL, or there is no room.", call);
    return solver.state == JOINED && solver.stopping ? MPIDATA_END : need_simulation(call);
}

int mpidata_param(const char *name, double *value) {
    MPIDATA_CALLED;
    if (value) *value = 0.0;
    MPIDATA_TRY(need_parameters("mpidata_param", name, value));
    const char *advice = "Set it to one, or unset it; a text is got by mpidata_param_text.";
    int i, status = solver.alone ? mpidata_alone_param(name, value) : mpidata_param_check(&solver.job.plan, name, &i, &advice);
    if (status) return misuse(status, advice);
    if (!solver.alone) *value = solver.task->parameters[i];
    return MPIDATA_SUCCESS;
}

int mpidata_param_text(const char *name, char *text, size_t size) {
    MPIDATA_CALLED;
    const char *advice;
    if (text && size) *text = '\0';
    MPIDATA_TRY(need_parameters("mpidata_param_text", name, size ? text : NULL));
    int status = mpidata_param_copy(solver.alone ? NULL : &solver.job.plan, solver.alone ? NULL : solver.task->parameters, name, text,
                                    size, &advice);
    return status ? misuse(status, advice) : status;
}

int mpidata_misuse(int status, const char *what, const char *advice) {
    MPIDATA_CALLED;
    if (mpidata_job_forked()) return mpidata_job_refuse_forked();
    if (solver.state == JOINED && solver.stopping) return MPIDATA_END;
    MPIDATA_TRY(need_simulation("mpidata_put"));
    (void)mpidata_error(status, "%s", what);
    return settle(misuse(status, advice));
}

/* A step that cannot be sent whole ends the job: the trainers would wait for the rest of it. */
static int cannot_send(int status) {
    if (status == MPIDATA_ERR_BLOCK) return misuse(status, "Put larger blocks, several of these at once.");
    if (status == MPIDATA_ERR_MEMORY) return misuse(status, "Lower solvers.in_flight in the job file.");
    return status;
}

static int stage(const char *name, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                 const int64_t *start, int lend) {
    if (mpidata_job_forked()) return mpidata_job_refuse_forked();
    if (solver.state == JOINED && solver.stopping) return MPIDATA_END;
    MPIDATA_TRY(need_simulation("mpidata_put"));
    const mpidata_put_arguments put = {name, values, dtype, ndim, shape, start};
    const char *advice;
    mpidata_block block;
    int status = mpidata_put_check(solver.alone ? NULL : &solver.job.plan, &put, solver.elements, &block, &advice);
    if (status) return misuse(status, advice);
    if (solver.alone) return MPIDATA_SUCCESS;
    int64_t elements = mpidata_block_elements(&block);
    solver.elements[block.field] += elements;
    if (!elements) return MPIDATA_SUCCESS;
    return cannot_send(mpidata_sender_stage(&solver.sender, &block, values, dtype, lend));
}

int mpidata_put(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape) {
    MPIDATA_CALLED;
    return settle(stage(field, values, dtype, ndim, shape, NULL, 0));
}

int mpidata_put_block(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                      const int64_t *start) {
    MPIDATA_CALLED;
    if (mpidata_job_forked()) return mpidata_job_refuse_forked();
    const char *advice;
    int status = mpidata_put_needs_start(field, ndim, start, &advice);
    if (status) return misuse(status, advice);
    return settle(stage(field, values, dtype, ndim, shape, start, 0));
}

int mpidata_iput(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                 const int64_t *start) {
    MPIDATA_CALLED;
    return settle(stage(field, values, dtype, ndim, shape, start, 1));
}

int mpidata_wait(void) {
    MPIDATA_CALLED;
    if (mpidata_job_forked()) return mpidata_job_refuse_forked();
    return settle(solver.state == JOINED && !solver.alone ? mpidata_sender_drain(&solver.sender, 1) : MPIDATA_SUCCESS);
}

int mpidata_wait_for(const void *values) {
    MPIDATA_CALLED;
    if (mpidata_job_forked()) return mpidata_job_refuse_forked();
    if (solver.state != JOINED || solver.alone || !values) return settle(MPIDATA_SUCCESS);
    return settle(mpidata_sender_wait_for(&solver.sender, values));
}

/* Where steps are short, not in each: a call of MPI that finds nothing may give the core away. */
static int listen_again(void) {
    double now = mpidata_now();
    if (now - solver.listened < LISTEN_EVERY_S) return MPIDATA_SUCCESS;
    solver.listened = now;
    return mpidata_job_listen(&solver.job);
}

/* Say that something is wrong with a step, which may not be the present one. */
static int misuse_of_step(int status, int64_t step, const char *advice) {
    int64_t present = solver.step;
    solver.step = step;
    (void)misuse(status, advice);
    solver.step = present;
    return status;
}

static int check_cover(const int64_t *elements, int64_t step) {
    const mpidata_plan *plan = &solver.job.plan;
    for (int i = 0; i < plan->n_fields; i++) {
        const mpidata_field *field = &plan->fields[i];
        if (elements[i] == field->elements) continue;
        int status = elements[i] ? MPIDATA_ERR_BLOCK : MPIDATA_ERR_FIELD;
        if (solver.job.rank_in_group != 0) return solver.broken = status; /* the group's rank 0 reports it */
        if (elements[i] == 0)
            (void)mpidata_error(status, "Field '%s' was not put", field->name);
        else
            (void)mpidata_error(status, "The blocks of field '%s' have %lld elements, the field has %lld: %s", field->name,
                                (long long)elements[i], (long long)field->elements,
                                elements[i] < field->elements ? "they leave a hole" : "they overlap, or it was put twice");
        return misuse_of_step(status, step, "The blocks of all ranks must cover each field exactly once per step.");
    }
    return MPIDATA_SUCCESS;
}

/* The program is not at fault if a simulation diverges: it is tried again. */
static int fail_here(double time) {
    (void)snprintf(solver.reason, sizeof solver.reason, "made step %lld at the time %g", (long long)solver.step, time);
    if (solver.alone) return mpidata_error(MPIDATA_ERR_ARGUMENT, "%s", NOT_FINITE);
    mpidata_sender_drop(&solver.sender);
    memset(solver.elements, 0, (size_t)solver.job.plan.n_fields * sizeof(int64_t));
    solver.failed = MPIDATA_TRY_FAILED, solver.lame = solver.group_size > 1 ? LAME_HERE : LAME_ALL;
    return mpidata_error(MPIDATA_ERR_ARGUMENT, "%s", NOT_FINITE);
}

/* All ranks hear of it in the same agreement, and begin no other one in this simulation. Where only some had such a time, or at
 * other steps, the trainers have parts of a sample, which are dropped with the group. */
static void fail_all(int together) {
    static const char HOW[] = "raised a time that is not finite";
    char who[128];
    mpidata_job_who(&solver.job, who, sizeof who);
    (void)mpidata_error(MPIDATA_ERR_ARGUMENT, "%s, simulation %lld, step %lld, %s", who, (long long)solver.simulation,
                        (long long)solver.step, solver.lame ? HOW : "ends with its group.");
    if (!together && !solver.lame) end_this_rank();
    if (!together) (void)fprintf(stderr, "mpidata: %s\n", mpidata_last_error());
    if (!together) mpidata_beat_at(HOW);
    if (!together) _exit(1);
    solver.failed = MPIDATA_TRY_FAILED;
    solver.lame = LAME_ALL;
}

/* The group agrees on its last steps while the next ones are computed. Rank 0 of the group alone hears of a stop, so that all
 * ranks leave at the same step. */
static int finish_tally(void) {
    mpidata_tally *tally = &solver.tally;
    if (!tally->under_way) return MPIDATA_SUCCESS;
    MPIDATA_TRY(mpidata_wait_request(&tally->request, MPI_STATUS_IGNORE, mpidata_sender_wait, &solver.sender));
    int64_t failed, at;
    int steps = tally->under_way, stop = mpidata_tally_finish(tally, &failed, &at);
    tally->under_way = 0;
    if (stop) solver.stopping = 1;
    if (failed) fail_all(failed == solver.group_size && at == failed * solver.step);
    if (failed) return MPIDATA_SUCCESS;
    for (int i = 0; i < steps; i++) MPIDATA_TRY(check_cover(tally->sum + i * tally->n_fields, tally->first + i));
    return MPIDATA_SUCCESS;
}

static int start_tally(int64_t last) {
    int leads = solver.job.rank_in_group == 0;
    const int64_t failed_at = solver.lame == LAME_HERE ? solver.step : -1;
    return mpidata_tally_start(&solver.tally, solver.job.role, last, leads && solver.job.told_to_stop, failed_at, leads);
}

static int commit(double time) {
    MPIDATA_TRY(cannot_send(mpidata_sender_commit(&solver.sender, solver.simulation, solver.step, time, solver.validation,
                                                  solver.task->parameters)));
    memset(solver.elements, 0, (size_t)solver.job.plan.n_fields * sizeof(int64_t));
    if (solver.step++) return MPIDATA_SUCCESS;
    mpidata_withdraw(MPIDATA_PULSE_STARTING);
    solver.start_s = mpidata_now() - solver.since - solver.next_s - solver.sender.waited;
    return MPIDATA_SUCCESS;
}

static int step_of_one(double time) {
    MPIDATA_TRY(listen_again());
    if (solver.job.told_to_stop) solver.stopping = 1;
    if (solver.stopping) return MPIDATA_END;
    MPIDATA_TRY(check_cover(solver.elements, solver.step));
    return commit(time);
}

static int step_of_many(double time) {
    MPIDATA_TRY(listen_again());
    if (!mpidata_is_finite(time)) (void)fail_here(time); /* the others hear of it when this rank closes the simulation */
    if (!mpidata_tally_add(&solver.tally, solver.elements) && !solver.lame) return commit(time);
    if (solver.lame) return MPIDATA_ERR_ARGUMENT;
    MPIDATA_TRY(finish_tally());
    if (solver.stopping || solver.lame) return solver.stopping ? MPIDATA_END : mpidata_error(MPIDATA_ERR_ARGUMENT, "%s", NOT_FINITE);
    MPIDATA_TRY(start_tally(solver.step));
    return commit(time);
}

static int step_now(double time) {
    if (mpidata_job_forked()) return mpidata_job_refuse_forked();
    if (solver.state == JOINED && solver.stopping) return MPIDATA_END;
    MPIDATA_TRY(need_simulation("mpidata_step"));
    if (!mpidata_is_finite(time) && (solver.alone || solver.group_size == 1)) return fail_here(time);
    if (!solver.alone) return solver.group_size > 1 ? step_of_many(time) : step_of_one(time);
    solver.step++;
    return MPIDATA_SUCCESS;
}

int mpidata_step(double time) { MPIDATA_CALLED; return settle(step_now(time)); }

static int check_committed(void) {
    for (int i = 0; i < solver.job.plan.n_fields && !solver.failed; i++) {
        if (!solver.elements[i]) continue;
        (void)mpidata_error(MPIDATA_ERR_ORDER, "Field '%s' was put, but no mpidata_step followed",
                            solver.job.plan.fields[i].name);
        return misuse(MPIDATA_ERR_ORDER, "Call mpidata_step after the puts of each step, the last one included.");
    }
    return MPIDATA_SUCCESS;
}

static int64_t microseconds(double seconds) { return seconds > 0 ? (int64_t)(1e6 * seconds) : 0; }

/* How the time since the simulation before was spent. Rounded down, the parts are not more than the whole. */
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

/* What the scheduler is told of the simulation that ends here. */
static int close_simulation(mpidata_event *event) {
    event->closed.simulation = -1;
    MPIDATA_TRY(finish_tally());
    if (solver.tally.steps && solver.lame != LAME_ALL && !solver.stopping) {
        MPIDATA_TRY(start_tally(solver.step - 1));
        MPIDATA_TRY(finish_tally());
    }
    if (solver.lame) solver.tally.steps = 0;
    MPIDATA_TRY(mpidata_sender_flush(&solver.sender));
    if (solver.running && !solver.stopping) {
        MPIDATA_TRY(check_committed());
        event->closed.simulation = solver.simulation;
        event->closed.steps = solver.step;
        event->closed.failed = solver.failed;
        (void)snprintf(event->text, sizeof event->text, "%s", solver.failed ? solver.reason : "");
    }
    tell_times(event);
    mpidata_sender_drop(&solver.sender);
    memset(solver.elements, 0, (size_t)solver.job.plan.n_fields * sizeof(int64_t));
    solver.running = solver.failed = solver.lame = 0;
    return MPIDATA_SUCCESS;
}

/* A spare group may wait for hours: it is to cost nothing. */
static int wait_for_task(void *sender) {
    static const struct timespec pause = {.tv_nsec = 10000000};
    if (mpidata_now() - solver.asked > PATIENT_S) (void)nanosleep(&pause, NULL);
    return mpidata_sender_wait(sender);
}

static int ask_scheduler(mpidata_event *event) {
    MPI_Request request;
    event->kind = MPIDATA_EVENT_NEXT;
    MPIDATA_TRY_MPI(MPI_Irecv(solver.task, (int)solver.task_bytes, MPI_BYTE, 0, MPIDATA_TAG_TASK, solver.job.data,
                              &request));
    MPIDATA_TRY(mpidata_job_send_event(&solver.job, event));
    MPI_Status came;
    int bytes = 0;
    MPIDATA_TRY(mpidata_wait_request(&request, &came, wait_for_task, &solver.sender));
    MPIDATA_TRY_MPI(MPI_Get_count(&came, MPI_BYTE, &bytes));
    return mpidata_task_fits(&solver.job.plan, solver.task, bytes);
}

static int next_alone(int64_t *simulation) {
    solver.no_more |= solver.running;
    solver.running = !solver.no_more;
    if (solver.no_more) return MPIDATA_END;
    *simulation = solver.simulation = 0;
    solver.step = 0;
    return MPIDATA_SUCCESS;
}

static int next_simulation(int64_t *simulation) {
    if (mpidata_job_forked()) return mpidata_job_refuse_forked();
    if (!simulation) return mpidata_error(MPIDATA_ERR_ARGUMENT, "mpidata_next: simulation is NULL.");
    if (solver.state != JOINED) return need_simulation("mpidata_next");
    if (solver.alone) return next_alone(simulation);
    if (solver.broken) return solver.broken;
    if (solver.no_more) return MPIDATA_END;
    mpidata_event event = {0};
    MPIDATA_TRY(close_simulation(&event));
    solver.awaits_task = 1;
    solver.asked = mpidata_now();
    if (solver.job.rank_in_group == 0) MPIDATA_TRY(ask_scheduler(&event));
    if (solver.group_size > 1) {
        MPI_Request request;
        MPIDATA_TRY_MPI(MPI_Ibcast(solver.task, (int)solver.task_bytes, MPI_BYTE, 0, solver.job.role, &request));
        MPIDATA_TRY(mpidata_wait_request(&request, MPI_STATUS_IGNORE, wait_for_task, &solver.sender));
    }
    solver.awaits_task = 0;
    solver.next_s = mpidata_now() - solver.since;
    MPIDATA_TRY(mpidata_task_check(&solver.job.plan, solver.task));
    if (solver.task->kind != MPIDATA_TASK_RUN) {
        solver.no_more = 1;
        return MPIDATA_END;
    }
    *simulation = solver.simulation = solver.task->simulation;
    solver.validation = solver.task->validation;
    solver.step = 0;
    solver.running = 1;
    solver.sender.by_try = solver.task->by_try;
    mpidata_tell(MPIDATA_PULSE_STARTING);
    return MPIDATA_SUCCESS;
}

int mpidata_next(int64_t *simulation) { MPIDATA_CALLED; return settle(next_simulation(simulation)); }

static int fail_simulation(const char *reason, int how) {
    if (mpidata_job_forked()) return mpidata_job_refuse_forked();
    if (solver.state == JOINED && solver.stopping) return MPIDATA_END;
    MPIDATA_TRY(need_simulation("mpidata_fail"));
    if (!reason) reason = "no reason given";
    if (solver.alone) (void)fprintf(stderr, "mpidata: the simulation is given up: %s\n", reason);
    if (solver.alone) return MPIDATA_SUCCESS;
    MPIDATA_TRY(finish_tally());
    (void)snprintf(solver.reason, sizeof solver.reason, "%s", reason);
    mpidata_sender_drop(&solver.sender);
    memset(solver.elements, 0, (size_t)solver.job.plan.n_fields * sizeof(int64_t));
    solver.failed = how;
    return MPIDATA_SUCCESS;
}

int mpidata_fail(const char *reason) { MPIDATA_CALLED; return settle(fail_simulation(reason, MPIDATA_GIVEN_UP)); }

int mpidata_fail_try(const char *reason) { MPIDATA_CALLED; return settle(fail_simulation(reason, MPIDATA_TRY_FAILED)); }

static int leave_job(void) {
    mpidata_event event = {0};
    MPIDATA_TRY(close_simulation(&event));
    MPIDATA_TRY(mpidata_sender_drain(&solver.sender, 0));
    MPIDATA_TRY(mpidata_wait_all_here(solver.job.role));
    event.kind = MPIDATA_EVENT_FINALIZED;
    if (solver.job.rank_in_group == 0) MPIDATA_TRY(mpidata_job_send_event(&solver.job, &event));
    return MPIDATA_SUCCESS;
}

int mpidata_finalize(void) {
    MPIDATA_CALLED;
    if (mpidata_job_forked()) return mpidata_job_refuse_forked();
    if (solver.state != JOINED) return need_simulation("mpidata_finalize");
    int status = settle(solver.alone ? MPIDATA_SUCCESS : solver.broken ? solver.broken : leave_job());
    if (solver.group != MPI_COMM_NULL) (void)MPI_Comm_free(&solver.group);
    if (!solver.alone) {
        mpidata_sender_close(&solver.sender);
        mpidata_job_leave(&solver.job);
        mpidata_job_left();
    }
    if (!solver.awaits_task) free(solver.task); /* else, after an error, MPI still has it */
    free(solver.elements);
    mpidata_tally_close(&solver.tally);
    solver.task = NULL, solver.elements = NULL;
    solver.state = LEFT;
    return status;
}

/* -- mpidata-carrier ------------------------------------------------------------------------------------------------ */

int mpidata_solver_look(int *stopping, int *under_way) {
    int status = settle(mpidata_sender_wait(&solver.sender));
    if (solver.job.told_to_stop) solver.stopping = 1;
    *stopping = solver.stopping;
    *under_way = solver.sender.flight.n > 0;
    return status;
}
void mpidata_solver_stop(void) { solver.stopping = 1; }
int mpidata_solver_lends(const void *values) { return mpidata_sender_lends(&solver.sender, values); }
const double *mpidata_solver_parameters(void) { return solver.task->parameters; }
int64_t mpidata_solver_try(void) { return solver.task->by_try; }
const mpidata_plan *mpidata_solver_plan(void) { return &solver.job.plan; }

int mpidata_solver_who(char *text, size_t size) {
    mpidata_job_who(&solver.job, text, size);
    return solver.job.index;
}
