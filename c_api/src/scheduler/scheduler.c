#include "scheduler/scheduler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/job.h"
#include "job/link.h"
#include "base/wait.h"
#include "containers/array.h"
#include "scheduler/reading.h"
#include "scheduler/teaching.h"

typedef struct {
    int role, index, rank_in_group, rank;
} death;

static struct {
    int open;
    mpidata_job job;
    char *plan; /* its text */
    mpidata_link **links; /* the world's first */
    int n_links;
    death *deaths; /* not reported yet */
    int n_deaths;
    mpidata_unsent *unsent;
    /* From invite to join: the trainers of the new hub; 0: it is unchanged. */
    int *members, n_members;
    char *not_in_hub; /* by trainer */
    int joins;        /* one is being joined; if that fails, a new hub is made */
    mpidata_backoff backoff; /* since the last event */
    int failed;       /* status of a poll that had to return events first */
    mpidata_answerers answering; /* inference ranks that were reported to solver ranks */
} scheduler;

static int need_open(void) {
    if (scheduler.open) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ORDER, "This process has not joined a job as its scheduler.");
}

static int no_memory(void) { return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the scheduler."); }

static int open_spawned(mpidata_link *link, MPI_Comm comm, int role, int number) {
    int *ranks = malloc((size_t)scheduler.job.plan.trainers * sizeof *ranks);
    if (!ranks) return no_memory();
    int status = mpidata_job_trainers_in(&scheduler.job, comm, ranks);
    if (!status) status = mpidata_link_open_spawned(link, comm, role, number, &scheduler.job.plan, ranks);
    free(ranks);
    return status;
}

/* Add the link with the world, or with a spawned group or loader. */
static int add_link(MPI_Comm comm, int role, int number) {
    const int world = !scheduler.n_links;
    const int grown = mpidata_array_resize(&scheduler.links, scheduler.n_links + 1, sizeof *scheduler.links);
    mpidata_link *link = calloc(1, sizeof *link);
    int status = !grown || !link ? no_memory()
                 : world         ? mpidata_link_open_world(link, comm, &scheduler.job.plan)
                                 : open_spawned(link, comm, role, number);
    if (status) {
        free(link);
        return status;
    }
    scheduler.links[scheduler.n_links++] = link;
    return MPIDATA_SUCCESS;
}

static mpidata_link *link_of(int role, int number) {
    for (int i = 0; i < scheduler.n_links; i++)
        if (mpidata_link_leader(scheduler.links[i], &scheduler.job.plan, role, number) >= 0) return scheduler.links[i];
    return NULL;
}

int mpidata_scheduler_open(MPI_Fint world, const char *plan) {
    if (scheduler.open) return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_scheduler_open: called a second time.");
    MPIDATA_TRY(mpidata_job_join(MPI_Comm_f2c(world), MPIDATA_ROLE_SCHEDULER, plan, &scheduler.job));
    const size_t trainers = (size_t)scheduler.job.plan.trainers;
    scheduler.members = calloc(trainers, sizeof *scheduler.members);
    scheduler.not_in_hub = calloc(trainers, 1);
    if (!scheduler.members || !scheduler.not_in_hub || !(scheduler.plan = strdup(plan))) return no_memory();
    MPIDATA_TRY(add_link(scheduler.job.data, 0, 0));
    if (scheduler.job.plan.trainers_at_least && !(scheduler.job.dead_trainers = calloc(trainers, 1))) return no_memory();
    mpidata_reading_open(&scheduler.job);
    scheduler.open = 1;
    return MPIDATA_SUCCESS;
}

static int forgive_death(int status) { return status == MPIDATA_ERR_DIED ? MPIDATA_SUCCESS : status; }

/* Messages to a dead rank are dropped. */
static int progress(void) {
    return forgive_death(mpidata_unsent_test(&scheduler.unsent));
}

/* Progress the requests of a sampler; *came: whether an answer, for which there is no event, has come. */
static int progress_beside(int *came) {
    MPIDATA_TRY(mpidata_reading_round(came));
    return mpidata_teaching_round(came);
}

/* Send a copy; never waits, since the receiver may itself be waiting for something else. */
static int send_later(const void *message, size_t bytes, int rank, int tag, const mpidata_link *link) {
    if (link->dead[rank]) return MPIDATA_SUCCESS;
    int status = mpidata_unsent_send(&scheduler.unsent, message, bytes, rank, tag, link->comm);
    return status == MPIDATA_ERR_MEMORY ? no_memory() : forgive_death(status);
}

static int order_all(const mpidata_order *order) {
    MPIDATA_TRY(need_open());
    for (int t = 0; t < scheduler.job.plan.trainers; t++)
        MPIDATA_TRY(send_later(order, sizeof *order, 1 + t, MPIDATA_TAG_ORDER, scheduler.links[0]));
    return MPIDATA_SUCCESS;
}

/* The sender's place is taken from the message's envelope and the plan, not from its contents. */
static int check_event(mpidata_event *event, int bytes, int rank, const mpidata_link *link) {
    const mpidata_plan *plan = &scheduler.job.plan;
    int number, role = mpidata_link_role(link, plan, rank, &number);
    if (!mpidata_event_fits(plan, event, bytes, role)) {
        char who[128];
        mpidata_link_who(link, plan, rank, who, sizeof who);
        return mpidata_error(MPIDATA_ERR_WIRE,
                             "%s sent a message (%d, %d bytes) that does not fit the job. Use one build of libmpidata for "
                             "the whole job.",
                             who, (int)event->kind, bytes);
    }
    event->role = role;
    event->index = number;
    event->rank = mpidata_link_planned_rank(link, plan, rank);
    return MPIDATA_SUCCESS;
}

static int note_deaths(mpidata_link *link) {
    MPIDATA_TRY(mpidata_link_deaths(link));
    if (!mpidata_array_resize(&scheduler.deaths, scheduler.n_deaths + link->n_newly + 1, sizeof *scheduler.deaths))
        return no_memory();
    for (int i = 0; i < link->n_newly; i++) {
        death *found = &scheduler.deaths[scheduler.n_deaths++];
        found->rank = mpidata_link_planned_rank(link, &scheduler.job.plan, link->newly[i]);
        found->role = mpidata_link_role(link, &scheduler.job.plan, link->newly[i], &found->index);
        (void)mpidata_link_group(link, &scheduler.job.plan, link->newly[i], &found->rank_in_group);
        /* A trainer is in every link, but dies once. */
        if (found->role == MPIDATA_ROLE_TRAINER && link != scheduler.links[0]) scheduler.n_deaths--;
        if (found->role == MPIDATA_ROLE_TRAINER && scheduler.job.dead_trainers) scheduler.job.dead_trainers[found->index] = 1;
    }
    return MPIDATA_SUCCESS;
}

static int tell_death(mpidata_event *event) {
    if (!scheduler.n_deaths) return MPIDATA_ERR_AGAIN;
    const death *first = scheduler.deaths;
    memset(event, 0, sizeof *event);
    event->kind = MPIDATA_EVENT_DIED;
    event->role = first->role;
    event->index = first->index;
    event->died.rank_in_group = first->rank_in_group;
    event->rank = first->rank;
    memmove(scheduler.deaths, scheduler.deaths + 1, (size_t)--scheduler.n_deaths * sizeof *first);
    return MPIDATA_SUCCESS;
}

/* Check a link once: MPIDATA_SUCCESS with an event, or MPIDATA_ERR_AGAIN. */
static int look(mpidata_link *link, mpidata_event *event) {
    int here = 0, bytes = 0;
    MPI_Message message;
    MPI_Status status;
    int found = mpidata_check_mpi(MPI_Improbe(MPI_ANY_SOURCE, MPIDATA_TAG_EVENT, link->comm, &here, &message, &status),
                                  "MPI_Improbe");
    if (found == MPIDATA_ERR_DIED) {
        MPIDATA_TRY(note_deaths(link));
        return tell_death(event);
    }
    MPIDATA_TRY(found);
    if (!here) return MPIDATA_ERR_AGAIN;
    MPIDATA_TRY_MPI(MPI_Get_count(&status, MPI_BYTE, &bytes));
    memset(event, 0, sizeof *event);
    found = mpidata_check_mpi(MPI_Mrecv(event, (int)sizeof *event, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    if (found == MPIDATA_ERR_DIED) return MPIDATA_ERR_AGAIN; /* it died while it sent */
    MPIDATA_TRY(found);
    return check_event(event, bytes, status.MPI_SOURCE, link);
}

/* A trainer's status comes periodically even without work. */
static void note_work(const mpidata_event *event) {
    if (event->kind != MPIDATA_EVENT_STATUS) scheduler.backoff = (mpidata_backoff){0};
}

static void pause_before(double left) {
    const int busy = scheduler.unsent != NULL;
    const long most = (long)(1e9 * (left < 1.0 ? left : 1.0));
    const long next = busy ? mpidata_backoff_next(&scheduler.backoff) : mpidata_backoff_next_patient(&scheduler.backoff);
    mpidata_pause(next < most ? next : most);
}

/* The next event that has come, or MPIDATA_ERR_AGAIN. */
static int take_event(mpidata_event *event) {
    int status = tell_death(event);
    for (int i = 0; i < scheduler.n_links && status == MPIDATA_ERR_AGAIN; i++) status = look(scheduler.links[i], event);
    return status;
}

int mpidata_scheduler_poll(mpidata_event *events, int room, double timeout_s, int *n) {
    *n = 0;
    MPIDATA_TRY(need_open());
    double deadline = mpidata_now() + timeout_s;
    for (;;) {
        int came = 0, status = scheduler.failed ? scheduler.failed : progress();
        if (!status) status = progress_beside(&came);
        for (; !status && *n < room && !(status = take_event(&events[*n])); ++*n) note_work(&events[*n]);
        scheduler.failed = *n && status != MPIDATA_ERR_AGAIN ? status : MPIDATA_SUCCESS;
        if (!*n && status != MPIDATA_ERR_AGAIN) return status;
        const double left = deadline - mpidata_now();
        if (came) scheduler.backoff = (mpidata_backoff){0};
        if (*n || came || left <= 0) return MPIDATA_SUCCESS;
        pause_before(left);
    }
}

static int need_group(int role, int number, mpidata_link **link) {
    MPIDATA_TRY(need_open());
    *link = link_of(role, number);
    return *link ? MPIDATA_SUCCESS
                 : mpidata_error(MPIDATA_ERR_ARGUMENT, "There is no %s %d.", mpidata_role_name(role), number);
}

static int send_task(int group, int kind, int64_t simulation, int64_t by_try, int validation, const double *parameters) {
    mpidata_link *link;
    MPIDATA_TRY(need_group(MPIDATA_ROLE_SOLVER, group, &link));
    const mpidata_plan *plan = &scheduler.job.plan;
    const size_t n = (size_t)plan->n_parameters, bytes = mpidata_task_bytes(plan);
    mpidata_task *task = calloc(1, bytes);
    if (!task) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a task.");
    task->kind = kind;
    task->validation = validation;
    task->simulation = simulation;
    task->by_try = by_try;
    if (n && parameters) memcpy(task->parameters, parameters, n * sizeof(double));
    int32_t *changes = mpidata_task_changes(plan, task);
    for (int i = 0; i < plan->n_changes; i++)
        changes[++*changes] = mpidata_change_code(plan->changes[i].trainer, plan->changes[i].joins);
    int leader = mpidata_link_leader(link, plan, MPIDATA_ROLE_SOLVER, group);
    int status = send_later(task, bytes, leader, MPIDATA_TAG_TASK, link);
    free(task);
    return status;
}

int mpidata_scheduler_dispatch(int group, int64_t simulation, int64_t by_try, int validation, const double *parameters) {
    return send_task(group, MPIDATA_TASK_RUN, simulation, by_try, validation, parameters);
}

int mpidata_scheduler_no_more(int group) { return send_task(group, MPIDATA_TASK_NO_MORE, -1, 0, 0, NULL); }

int mpidata_scheduler_expect(int64_t simulation, int64_t steps, int by_try) {
    mpidata_order order = {.kind = MPIDATA_ORDER_EXPECT, .expect = {simulation, steps, by_try}};
    return order_all(&order);
}

int mpidata_scheduler_cancel(int64_t simulation, int group, int closed) {
    mpidata_order order = {.kind = MPIDATA_ORDER_CANCEL, .cancel = {simulation, group, closed}};
    return order_all(&order);
}

int mpidata_scheduler_cancel_group(int group, int64_t simulation, int64_t by_try) {
    mpidata_link *link;
    const mpidata_stop stop = {.what = MPIDATA_STOP_CANCEL, .simulation = simulation, .by_try = by_try};
    MPIDATA_TRY(need_group(MPIDATA_ROLE_SOLVER, group, &link));
    int leader = mpidata_link_leader(link, &scheduler.job.plan, MPIDATA_ROLE_SOLVER, group);
    return send_later(&stop, sizeof stop, leader, MPIDATA_TAG_STOP, link);
}

/* MPI does not always end sends to a dead rank. */
static int tell_solvers_of(const mpidata_link *link, int32_t what) {
    for (int g = link->first_group; g < link->first_group + link->n_groups; g++) {
        const int leader = mpidata_link_leader(link, &scheduler.job.plan, MPIDATA_ROLE_SOLVER, g);
        for (int r = 0; r < scheduler.job.plan.ranks_per_group; r++)
            MPIDATA_TRY(send_later(&what, sizeof what, leader + r, MPIDATA_TAG_STOP, link));
    }
    return MPIDATA_SUCCESS;
}

static int tell_solvers(int32_t what) {
    for (int i = 0; i < scheduler.n_links; i++) MPIDATA_TRY(tell_solvers_of(scheduler.links[i], what));
    return MPIDATA_SUCCESS;
}

/* Groups that join later learn of it then. */
static int tell_of_answerer(int number, int lost) {
    const int32_t word = mpidata_answerer_word(number, lost);
    MPIDATA_TRY(mpidata_answerers_hear(&scheduler.answering, word));
    return tell_solvers(word);
}

static int tell_of_answerers(const mpidata_link *link) {
    for (int i = 0; i < scheduler.answering.n; i++)
        if (mpidata_answerer_lives(&scheduler.answering, i)) MPIDATA_TRY(tell_solvers_of(link, mpidata_answerer_word(i, 0)));
    return MPIDATA_SUCCESS;
}

static int change_trainers(int trainer, int joins) {
    mpidata_order order = {.kind = joins ? MPIDATA_ORDER_TRAINER_JOINED : MPIDATA_ORDER_TRAINER_LOST, .of_trainer = {trainer}};
    MPIDATA_TRY(need_open());
    mpidata_plan *plan = &scheduler.job.plan;
    const int code = mpidata_change_code(trainer, joins);
    int known = trainer < 0 || trainer >= plan->trainers || (joins && mpidata_plan_trains(plan, trainer));
    for (int i = 0; i < plan->n_changes; i++) known |= code == mpidata_change_code(plan->changes[i].trainer, plan->changes[i].joins);
    if (known) return mpidata_error(MPIDATA_ERR_ARGUMENT, "There is no trainer %d to %s.", trainer, joins ? "join" : "lose");
    if (mpidata_plan_change_by(plan, code)) return no_memory();
    return order_all(&order);
}

/* They also ask trainers for published arrays. */
static int tell_inference(int32_t what) {
    for (int i = 0; i < scheduler.n_links; i++) {
        const mpidata_link *link = scheduler.links[i];
        for (int number = link->first_inference; number < link->first_inference + link->n_inference; number++) {
            const int rank = mpidata_link_leader(link, &scheduler.job.plan, MPIDATA_ROLE_INFERENCE, number);
            MPIDATA_TRY(send_later(&what, sizeof what, rank, MPIDATA_TAG_STOP, link));
        }
    }
    return MPIDATA_SUCCESS;
}

int mpidata_scheduler_lose_trainer(int trainer) {
    MPIDATA_TRY(mpidata_scheduler_retire_trainer(trainer));
    MPIDATA_TRY(tell_inference(MPIDATA_STOP_TRAINER_LOST + trainer));
    return tell_solvers(MPIDATA_STOP_TRAINER_LOST + trainer);
}

int mpidata_scheduler_retire_trainer(int trainer) { return change_trainers(trainer, 0); }

int mpidata_scheduler_join_trainer(int trainer) { return change_trainers(trainer, 1); }

int mpidata_scheduler_end_of_stream(void) {
    mpidata_order order = {.kind = MPIDATA_ORDER_END_OF_STREAM};
    return order_all(&order);
}

/* The first rank of a group informs the others; each of them that waits for an answer must give up independently. */
static int tell_to_leave(int role, int number) {
    const mpidata_plan *plan = &scheduler.job.plan;
    mpidata_link *link;
    int32_t leave = MPIDATA_STOP_LEAVE;
    MPIDATA_TRY(need_group(role, number, &link));
    const int leader = mpidata_link_leader(link, plan, role, number);
    const int n = role == MPIDATA_ROLE_SOLVER && plan->inference ? plan->ranks_per_group : 1;
    for (int i = 0; i < n; i++) MPIDATA_TRY(send_later(&leave, sizeof leave, leader + i, MPIDATA_TAG_STOP, link));
    return MPIDATA_SUCCESS;
}

int mpidata_scheduler_stop(void) {
    mpidata_order order = {.kind = MPIDATA_ORDER_STOP};
    MPIDATA_TRY(order_all(&order));
    for (int i = 0; i < scheduler.n_links; i++) {
        const mpidata_link *link = scheduler.links[i];
        for (int g = link->first_group; g < link->first_group + link->n_groups; g++)
            MPIDATA_TRY(tell_to_leave(MPIDATA_ROLE_SOLVER, g));
    }
    return MPIDATA_SUCCESS;
}

int mpidata_scheduler_release(int role, int number) { return tell_to_leave(role, number); }

int mpidata_scheduler_answers(int inference) {
    mpidata_link *link;
    MPIDATA_TRY(need_group(MPIDATA_ROLE_INFERENCE, inference, &link));
    return tell_of_answerer(inference, 0);
}

int mpidata_scheduler_teaches(int learner) {
    mpidata_link *link;
    MPIDATA_TRY(need_group(MPIDATA_ROLE_LEARNER, learner, &link));
    return mpidata_teaching_begin(link, learner, mpidata_link_leader(link, &scheduler.job.plan, MPIDATA_ROLE_LEARNER, learner));
}

static int order_about_loader(int kind, int loader) {
    mpidata_order order = {.kind = kind, .of_group = {.group = loader, .role = MPIDATA_ROLE_LOADER}};
    return order_all(&order);
}

int mpidata_scheduler_serves(int loader) { return order_about_loader(MPIDATA_ORDER_SERVES, loader); }

int mpidata_scheduler_retires(int loader) { return order_about_loader(MPIDATA_ORDER_RETIRES, loader); }

int mpidata_scheduler_rests(int loader) { return order_about_loader(MPIDATA_ORDER_RESTS, loader); }

int mpidata_scheduler_relieve(int trainer, int64_t samples) {
    MPIDATA_TRY(need_open());
    if (trainer < 0 || trainer >= scheduler.job.plan.trainers)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "There is no trainer %d.", trainer);
    mpidata_order order = {.kind = MPIDATA_ORDER_RELIEVE, .relieve = {samples}};
    return send_later(&order, sizeof order, 1 + trainer, MPIDATA_TAG_ORDER, scheduler.links[0]);
}

int mpidata_scheduler_hands_over(int trainer) {
    mpidata_order order = {.kind = MPIDATA_ORDER_HANDS_OVER, .of_trainer = {trainer}};
    return order_all(&order);
}

int mpidata_scheduler_validation(void) {
    mpidata_order order = {.kind = MPIDATA_ORDER_VALIDATION};
    return order_all(&order);
}

int mpidata_scheduler_lose(int role, int number, const char *at) {
    mpidata_link *link;
    int32_t lost = MPIDATA_STOP_LOST;
    mpidata_order order = {.kind = MPIDATA_ORDER_LOST, .of_group = {.group = number, .role = role}};
    (void)snprintf(order.of_group.at, sizeof order.of_group.at, "%s", at);
    MPIDATA_TRY(need_group(role, number, &link));
    int leader = mpidata_link_leader(link, &scheduler.job.plan, role, number);
    int ranks = role == MPIDATA_ROLE_SOLVER ? scheduler.job.plan.ranks_per_group : 1;
    for (int r = 0; r < ranks; r++)
        MPIDATA_TRY(send_later(&lost, sizeof lost, leader + r, MPIDATA_TAG_STOP, link));
    if (role == MPIDATA_ROLE_INFERENCE) MPIDATA_TRY(tell_of_answerer(number, 1));
    if (role == MPIDATA_ROLE_LEARNER) mpidata_teaching_end(number);
    const int known = role == MPIDATA_ROLE_SOLVER || role == MPIDATA_ROLE_LOADER || link != scheduler.links[0];
    return known ? order_all(&order) : MPIDATA_SUCCESS;
}

int mpidata_scheduler_gone(int role, int number) {
    mpidata_link *link;
    mpidata_order order = {.kind = MPIDATA_ORDER_GONE, .of_group = {.group = number, .role = role}};
    MPIDATA_TRY(need_group(role, number, &link));
    if (role == MPIDATA_ROLE_LEARNER) mpidata_teaching_end(number);
    if (link == scheduler.links[0]) return role == MPIDATA_ROLE_LOADER ? order_all(&order) : MPIDATA_SUCCESS;
    int i = 0;
    while (scheduler.links[i] != link) i++;
    scheduler.links[i] = scheduler.links[--scheduler.n_links];
    MPI_Comm comm = link->comm;
    mpidata_link_close(link);
    free(link);
    MPIDATA_TRY_MPI(MPI_Comm_free(&comm));
    return order_all(&order);
}

int mpidata_scheduler_trainer_lives(int trainer, int *yes) {
    MPIDATA_TRY(need_open());
    if (trainer < 0 || trainer >= scheduler.job.plan.trainers)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "There is no trainer %d.", trainer);
    *yes = !scheduler.links[0]->dead[1 + trainer];
    return MPIDATA_SUCCESS;
}

int mpidata_scheduler_one_host(int *yes) {
    MPIDATA_TRY(need_open());
    *yes = scheduler.job.one_host;
    return MPIDATA_SUCCESS;
}

int mpidata_scheduler_greet(MPI_Fint intercomm, int role, int number, MPI_Fint *bridge) {
    MPI_Comm between = MPI_Comm_f2c(intercomm), merged = MPI_COMM_NULL;
    MPIDATA_TRY(need_open());
    MPIDATA_TRY_MPI(MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN));
    MPIDATA_TRY_MPI(MPI_Intercomm_merge(between, 0, &merged));
    MPIDATA_TRY_MPI(MPI_Comm_set_errhandler(merged, MPI_ERRORS_RETURN));
    MPIDATA_TRY_MPI(MPI_Comm_free(&between));
    *bridge = MPI_Comm_c2f(merged);
    return mpidata_job_greet(merged, scheduler.plan, role, number);
}

int mpidata_scheduler_prepare(int role, int number) {
    mpidata_order order = {.kind = MPIDATA_ORDER_PREPARE, .of_group = {.group = number, .role = role}};
    return order_all(&order);
}

int mpidata_scheduler_call(MPI_Fint bridge) {
    MPIDATA_TRY(need_open());
    int status = mpidata_wait_all_here(MPI_Comm_f2c(bridge));
    return status == MPIDATA_ERR_DIED ? mpidata_error(status, "One of its ranks died before it joined the job.") : status;
}

int mpidata_scheduler_has_died(MPI_Fint bridge, int *yes) {
    int here = 0;
    MPIDATA_TRY(need_open());
    int status = mpidata_check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPIDATA_TAG_EVENT, MPI_Comm_f2c(bridge), &here, MPI_STATUS_IGNORE),
                                   "MPI_Iprobe");
    *yes = status == MPIDATA_ERR_DIED;
    return *yes ? MPIDATA_SUCCESS : status;
}

/* Find the living trainers, if the hub has others, or is in doubt. */
static void find_members(void) {
    int anew = scheduler.joins, n = 0;
    for (int t = 0; t < scheduler.job.plan.trainers; t++) {
        const int dead = scheduler.links[0]->dead[1 + t];
        anew |= dead && !scheduler.not_in_hub[t];
        if (!dead) scheduler.members[n++] = t;
    }
    scheduler.n_members = anew && scheduler.job.hub.pairs ? n : 0;
}

int mpidata_scheduler_invite(int role, int number) {
    mpidata_order order = {.kind = MPIDATA_ORDER_JOIN, .of_group = {.group = number, .role = role}};
    MPIDATA_TRY(need_open());
    find_members();
    scheduler.joins = 1;
    if (!scheduler.n_members) return order_all(&order);
    memset(scheduler.not_in_hub, 1, (size_t)scheduler.job.plan.trainers);
    order.of_group.members = scheduler.n_members;
    for (; order.of_group.place < scheduler.n_members; order.of_group.place++) {
        const int trainer = scheduler.members[order.of_group.place];
        scheduler.not_in_hub[trainer] = 0;
        MPIDATA_TRY(send_later(&order, sizeof order, 1 + trainer, MPIDATA_TAG_ORDER, scheduler.links[0]));
    }
    return MPIDATA_SUCCESS;
}

int mpidata_scheduler_dismiss(int role, int number) {
    mpidata_order order = {.kind = MPIDATA_ORDER_DISMISS, .of_group = {.group = number, .role = role}};
    return order_all(&order);
}

int mpidata_scheduler_join(MPI_Fint bridge, MPI_Fint *comm) {
    MPI_Comm greeted = MPI_Comm_f2c(bridge), joined = MPI_COMM_NULL;
    MPIDATA_TRY(need_open());
    int status = scheduler.n_members
                     ? mpidata_hub_renew_as_scheduler(&scheduler.job.hub, scheduler.n_members, scheduler.members)
                     : MPIDATA_SUCCESS;
    if (!status) status = mpidata_job_join_group(&scheduler.job, greeted, &joined);
    if (status) {
        (void)mpidata_hub_let_others_be_made();
        return status;
    }
    MPIDATA_TRY_MPI(MPI_Comm_free(&greeted));
    *comm = MPI_Comm_c2f(joined);
    return MPIDATA_SUCCESS;
}

int mpidata_scheduler_link(int role, int number, MPI_Fint comm) {
    MPIDATA_TRY(need_open());
    scheduler.joins = 0;
    MPIDATA_TRY(add_link(MPI_Comm_f2c(comm), role, number));
    return tell_of_answerers(scheduler.links[scheduler.n_links - 1]);
}

int mpidata_scheduler_checkpoint(int64_t number) {
    mpidata_order order = {.kind = MPIDATA_ORDER_CHECKPOINT, .checkpoint = {number}};
    return order_all(&order);
}

int mpidata_scheduler_trainers(int64_t number, int64_t count) {
    mpidata_order order = {.kind = MPIDATA_ORDER_TRAINERS, .trainers = {number, count}};
    return order_all(&order);
}

int mpidata_scheduler_all_gone(void) {
    mpidata_order order = {.kind = MPIDATA_ORDER_ALL_GONE};
    MPIDATA_TRY(need_open());
    MPIDATA_TRY(tell_solvers_of(scheduler.links[0], MPIDATA_STOP_OVER)); /* those of the world sleep before MPI_Finalize */
    return order_all(&order);
}

void mpidata_scheduler_abort(int status) {
    (void)MPI_Abort(scheduler.open ? scheduler.job.data : MPI_COMM_WORLD, status);
    exit(status);
}

int mpidata_scheduler_close(void) {
    MPIDATA_TRY(need_open());
    mpidata_reading_close();
    mpidata_teaching_close();
    /* The last orders must have left before MPI is finalised; the trainers take them within milliseconds. */
    double deadline = mpidata_now() + 5.0;
    mpidata_backoff backoff = {0};
    while (scheduler.unsent && mpidata_now() < deadline) {
        MPIDATA_TRY(progress());
        mpidata_backoff_pause(&backoff);
    }
    for (int i = 0; i < scheduler.n_links; i++) {
        mpidata_link_close(scheduler.links[i]);
        free(scheduler.links[i]);
    }
    free(scheduler.links);
    mpidata_answerers_close(&scheduler.answering);
    free(scheduler.deaths);
    free(scheduler.plan);
    free(scheduler.members);
    free(scheduler.not_in_hub);
    scheduler.links = NULL;
    scheduler.deaths = NULL;
    scheduler.plan = NULL;
    scheduler.members = NULL;
    scheduler.not_in_hub = NULL;
    scheduler.n_links = scheduler.n_deaths = 0;
    mpidata_job_leave(&scheduler.job);
    scheduler.open = 0;
    mpidata_job_left();
    return MPIDATA_SUCCESS;
}
