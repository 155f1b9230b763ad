#include "scheduler.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "wait.h"

typedef struct pending_send {
    MPI_Request request;
    struct pending_send *next;
    double message[]; /* for its alignment */
} pending_send;

static struct {
    int open;
    mpidata_job job;
    pending_send *pending;
} scheduler;

static int need_open(void) {
    if (scheduler.open) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ORDER, "This process has not joined a job as its scheduler.");
}

int mpidata_scheduler_open(MPI_Fint world, const char *plan) {
    if (scheduler.open) return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_scheduler_open: called a second time.");
    MPIDATA_TRY(mpidata_job_join(MPI_Comm_f2c(world), MPIDATA_ROLE_SCHEDULER, plan, &scheduler.job));
    scheduler.open = 1;
    return MPIDATA_SUCCESS;
}

static int progress(void) {
    for (pending_send **link = &scheduler.pending; *link;) {
        pending_send *send = *link;
        int done = 0;
        MPIDATA_TRY_MPI(MPI_Test(&send->request, &done, MPI_STATUS_IGNORE));
        if (done) {
            *link = send->next;
            free(send);
        } else {
            link = &send->next;
        }
    }
    return MPIDATA_SUCCESS;
}

/* Send a copy; never waits, since the receiver may itself be waiting for something else. */
static int send_later(const void *message, size_t bytes, int rank, int tag) {
    pending_send *send = malloc(sizeof *send + bytes);
    if (!send) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a message of the scheduler.");
    if (bytes) memcpy(send->message, message, bytes);
    send->next = scheduler.pending;
    int status = mpidata_check_mpi(
        MPI_Isend(send->message, (int)bytes, MPI_BYTE, rank, tag, scheduler.job.data, &send->request), "MPI_Isend");
    if (status) {
        free(send);
        return status;
    }
    scheduler.pending = send;
    return MPIDATA_SUCCESS;
}

static int order_all(const mpidata_order *order) {
    MPIDATA_TRY(need_open());
    for (int t = 0; t < scheduler.job.plan.trainers; t++)
        MPIDATA_TRY(send_later(order, sizeof *order, 1 + t, MPIDATA_TAG_ORDER));
    return MPIDATA_SUCCESS;
}

/* The sender's place is taken from the message's envelope and the plan, not from what it says of itself. */
static int check_event(mpidata_event *event, int bytes, int rank) {
    int rank_in_group, index, role = mpidata_plan_role(&scheduler.job.plan, rank, &index, &rank_in_group);
    int64_t simulations = scheduler.job.plan.simulations + scheduler.job.plan.validation;
    int from_trainer = event->kind == MPIDATA_EVENT_HELD || event->kind == MPIDATA_EVENT_STATUS ||
                       event->kind == MPIDATA_EVENT_REPORT || event->kind == MPIDATA_EVENT_STOP ||
                       event->kind == MPIDATA_EVENT_GOODBYE || event->kind == MPIDATA_EVENT_CHECKPOINT_WANTED ||
                       event->kind == MPIDATA_EVENT_CHECKPOINT_WRITTEN;
    int from_solver = event->kind == MPIDATA_EVENT_NEXT || event->kind == MPIDATA_EVENT_FINALIZED;
    int from_both = event->kind == MPIDATA_EVENT_ERROR;
    int fits = (role == MPIDATA_ROLE_TRAINER && (from_trainer || from_both)) ||
               (role == MPIDATA_ROLE_SOLVER && (from_solver || from_both));
    int closes = from_solver || event->kind == MPIDATA_EVENT_HELD;
    if (closes && (event->simulation < -1 || event->simulation >= simulations || event->steps < 0)) fits = 0;
    if (event->kind == MPIDATA_EVENT_CHECKPOINT_WRITTEN && (event->steps <= 0 || event->statistics[1] < 0)) fits = 0;
    if (bytes <= (int)offsetof(mpidata_event, text)) fits = 0;
    if (!fits)
        return mpidata_error(MPIDATA_ERR_WIRE,
                             "%s %d (rank %d) sent a message (%d, %d bytes) that does not fit the job. Use one build of "
                             "libmpidata for the whole job.",
                             mpidata_role_name(role), index, rank, (int)event->kind, bytes);
    event->rank = rank;
    event->index = index;
    event->text[sizeof event->text - 1] = '\0';
    return MPIDATA_SUCCESS;
}

int mpidata_scheduler_poll(mpidata_event *event, double timeout_s) {
    MPIDATA_TRY(need_open());
    double deadline = mpidata_now() + timeout_s;
    mpidata_backoff backoff = {0};
    for (;;) {
        int here = 0, bytes = 0;
        MPI_Message message;
        MPI_Status status;
        MPIDATA_TRY(progress());
        MPIDATA_TRY_MPI(
            MPI_Improbe(MPI_ANY_SOURCE, MPIDATA_TAG_EVENT, scheduler.job.data, &here, &message, &status));
        if (here) {
            MPIDATA_TRY_MPI(MPI_Get_count(&status, MPI_BYTE, &bytes));
            memset(event, 0, sizeof *event);
            MPIDATA_TRY_MPI(MPI_Mrecv(event, (int)sizeof *event, MPI_BYTE, &message, MPI_STATUS_IGNORE));
            return check_event(event, bytes, status.MPI_SOURCE);
        }
        if (mpidata_now() >= deadline) return MPIDATA_ERR_AGAIN;
        mpidata_backoff_pause(&backoff);
    }
}

static int send_task(int group, int kind, int64_t simulation, int validation, const double *parameters) {
    MPIDATA_TRY(need_open());
    size_t n = (size_t)scheduler.job.plan.n_parameters, bytes = sizeof(mpidata_task) + n * sizeof(double);
    if (group < 0 || group >= scheduler.job.plan.groups)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "There is no group %d.", group);
    mpidata_task *task = calloc(1, bytes);
    if (!task) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a task.");
    task->kind = kind;
    task->validation = validation;
    task->simulation = simulation;
    if (n && parameters) memcpy(task->parameters, parameters, n * sizeof(double));
    int status = send_later(task, bytes, mpidata_plan_group_leader(&scheduler.job.plan, group), MPIDATA_TAG_TASK);
    free(task);
    return status;
}

int mpidata_scheduler_dispatch(int group, int64_t simulation, int validation, const double *parameters) {
    return send_task(group, MPIDATA_TASK_RUN, simulation, validation, parameters);
}

int mpidata_scheduler_no_more(int group) { return send_task(group, MPIDATA_TASK_NO_MORE, -1, 0, NULL); }

int mpidata_scheduler_expect(int64_t simulation, int64_t steps, int validation) {
    mpidata_order order = {MPIDATA_ORDER_EXPECT, validation, simulation, steps};
    return order_all(&order);
}

int mpidata_scheduler_end_of_stream(void) {
    mpidata_order order = {.kind = MPIDATA_ORDER_END_OF_STREAM};
    return order_all(&order);
}

int mpidata_scheduler_stop(void) {
    mpidata_order order = {.kind = MPIDATA_ORDER_STOP};
    MPIDATA_TRY(order_all(&order));
    for (int g = 0; g < scheduler.job.plan.groups; g++)
        MPIDATA_TRY(send_later(NULL, 0, mpidata_plan_group_leader(&scheduler.job.plan, g), MPIDATA_TAG_STOP));
    return MPIDATA_SUCCESS;
}

int mpidata_scheduler_relieve(int trainer, int64_t samples) {
    MPIDATA_TRY(need_open());
    if (trainer < 0 || trainer >= scheduler.job.plan.trainers)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "There is no trainer %d.", trainer);
    mpidata_order order = {.kind = MPIDATA_ORDER_RELIEVE, .steps = samples};
    return send_later(&order, sizeof order, 1 + trainer, MPIDATA_TAG_ORDER);
}

int mpidata_scheduler_checkpoint(int64_t number) {
    mpidata_order order = {.kind = MPIDATA_ORDER_CHECKPOINT, .steps = number};
    return order_all(&order);
}

int mpidata_scheduler_all_gone(void) {
    mpidata_order order = {.kind = MPIDATA_ORDER_ALL_GONE};
    return order_all(&order);
}

void mpidata_scheduler_abort(int status) {
    (void)MPI_Abort(scheduler.open ? scheduler.job.data : MPI_COMM_WORLD, status);
    exit(status);
}

int mpidata_scheduler_close(void) {
    MPIDATA_TRY(need_open());
    /* The last orders must have left before MPI is finalised; the trainers take them within milliseconds. */
    double deadline = mpidata_now() + 5.0;
    mpidata_backoff backoff = {0};
    while (scheduler.pending && mpidata_now() < deadline) {
        MPIDATA_TRY(progress());
        mpidata_backoff_pause(&backoff);
    }
    mpidata_job_leave(&scheduler.job);
    scheduler.open = 0;
    mpidata_job_left();
    return MPIDATA_SUCCESS;
}
