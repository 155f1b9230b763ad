#include "job/job.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/beat.h"
#include "job/run_files.h"
#include "wire/identity.h"
#include "base/wait.h"

static pid_t joined_by;

int mpidata_in_job(void) {
    const char *run = getenv("MPIDATA_RUN");
    return run && *run;
}

/* A transport that writes to a peer that has died must get an error, not a signal. */
static void ignore_sigpipe(void) {
    struct sigaction action;
    if (sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL) (void)signal(SIGPIPE, SIG_IGN);
}

static const char *slurm_plugin(void) {
    if (strncmp(mpidata_built_with(), "Open MPI", 8) == 0) return "pmix";
    return strstr(mpidata_built_with(), "CRAY MPICH") ? "cray_shasta" : "pmi2";
}

/* The wrong mpirun, or srun with the wrong --mpi, silently starts N worlds of size 1. */
static int check_promised_size(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    int size = 0;
    MPIDATA_TRY_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
    for (int i = 0; i < 3; i++) {
        const char *promised = getenv(names[i]);
        if (!promised || (i == 2 && !getenv("SLURM_STEP_ID"))) continue;
        if (atoi(promised) == size) return MPIDATA_SUCCESS;
        return mpidata_error(MPIDATA_ERR_JOB,
                             "The launcher started %s ranks, but MPI_COMM_WORLD has %d. This mpirun (or srun --mpi=...) "
                             "does not belong to the MPI of libmpidata, %s. Start the job with the mpirun of that MPI, "
                             "under Slurm with srun --mpi=%s, or let `mpidata run` choose it.",
                             promised, size, mpidata_built_with(), slurm_plugin());
    }
    return MPIDATA_SUCCESS;
}

static int broadcast(void *buffer, int bytes, MPI_Comm comm) {
    MPI_Request request;
    MPIDATA_TRY_MPI(MPI_Ibcast(buffer, bytes, MPI_BYTE, 0, comm, &request));
    return mpidata_wait_request(&request, MPI_STATUS_IGNORE, NULL, NULL);
}

/* Rank 0 of comm has the plan's text; spawned ranks also learn their role and number. */
static int share_plan(MPI_Comm comm, const char *plan_text, int *role, int *number, mpidata_plan *plan) {
    int head[3] = {plan_text ? (int)strlen(plan_text) + 1 : 0, *role, *number}, bytes;
    MPIDATA_TRY(broadcast(head, (int)sizeof head, comm));
    bytes = head[0];
    *role = head[1];
    *number = head[2];
    if (bytes <= 0) return mpidata_error(MPIDATA_ERR_JOB, "Rank 0 of the job sent no plan.");
    char *text = malloc((size_t)bytes);
    if (!text) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory while receiving the plan.");
    if (plan_text) memcpy(text, plan_text, (size_t)bytes);
    int status = broadcast(text, bytes, comm);
    if (!status && plan) {
        text[bytes - 1] = '\0';
        status = mpidata_plan_parse(text, plan);
    }
    free(text);
    return status;
}

static int check_place(const mpidata_job *job, int kind, int size) {
    if (size != job->plan.world)
        return mpidata_error(MPIDATA_ERR_JOB,
                             "The job was planned for %d ranks (1 scheduler, %d trainers, %d groups of %d, %d loaders, %d "
                             "inference ranks, %d learners, %d servers, %d mates), but has %d. Start it with -n %d, or change "
                             "trainers.ranks, solvers, loaders, inference, parameters.learner_rank or servers in the job file.",
                             job->plan.world, job->plan.trainers, mpidata_plan_world_groups(&job->plan),
                             job->plan.ranks_per_group, mpidata_plan_world_loaders(&job->plan),
                             mpidata_plan_world_inference(&job->plan), mpidata_plan_world_learners(&job->plan),
                             job->plan.servers, mpidata_plan_mates(&job->plan), size, job->plan.world);
    if (kind != job->kind)
        return mpidata_error(MPIDATA_ERR_JOB,
                             "Rank %d is a %s by the plan, but its program joined as a %s. Check trainers.program and "
                             "solvers.program in the job file.",
                             job->rank, mpidata_role_name(job->kind), mpidata_role_name(kind));
    return MPIDATA_SUCCESS;
}

void mpidata_job_left(void) { mpidata_tell(MPIDATA_PULSE_LEFT); }

/* Whether all ranks are on one host. One reduction: MPI_Comm_split_type takes several collectives of all ranks. */
static int count_hosts(mpidata_job *job) {
    char name[MPI_MAX_PROCESSOR_NAME];
    int length = 0;
    int64_t number = 5381, least_and_most[2];
    MPI_Request request;
    MPIDATA_TRY_MPI(MPI_Get_processor_name(name, &length));
    for (int i = 0; i < length; i++) number = (number * 33 + (unsigned char)name[i]) % ((int64_t)1 << 56);
    least_and_most[0] = -number;
    least_and_most[1] = number;
    MPIDATA_TRY_MPI(MPI_Iallreduce(MPI_IN_PLACE, least_and_most, 2, MPI_INT64_T, MPI_MAX, job->data, &request));
    MPIDATA_TRY(mpidata_wait_request(&request, MPI_STATUS_IGNORE, NULL, NULL));
    job->one_host = -least_and_most[0] == least_and_most[1];
    return MPIDATA_SUCCESS;
}

/* Make a communicator of consecutive ranks; the others do not take part. No concurrent call has the same `tag`. */
static int unite(const mpidata_job *job, int first, int n, int tag, MPI_Comm *comm) {
    MPI_Group all, those;
    int range[1][3] = {{first, first + n - 1, 1}};
    if (n == 1) {
        MPIDATA_TRY_MPI(MPI_Comm_dup(MPI_COMM_SELF, comm));
    } else {
        MPIDATA_TRY_MPI(MPI_Comm_group(job->data, &all));
        MPIDATA_TRY_MPI(MPI_Group_range_incl(all, 1, range, &those));
        MPIDATA_TRY_MPI(MPI_Comm_create_group(job->data, those, tag, comm));
        MPIDATA_TRY_MPI(MPI_Group_free(&those));
        MPIDATA_TRY_MPI(MPI_Group_free(&all));
    }
    return mpidata_check_mpi(MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

static int unite_role(mpidata_job *job) {
    int first = job->rank - job->rank_in_group, n = 1;
    if (job->kind == MPIDATA_ROLE_SOLVER) n = job->plan.ranks_per_group;
    if (job->kind == MPIDATA_ROLE_TRAINER) n = job->plan.trainers, first = 1;
    return unite(job, first, n, job->kind, &job->role);
}

static int join_world(MPI_Comm world, int kind, const char *plan_text, mpidata_job *job) {
    int size = 0, none = 0;
    MPIDATA_TRY_MPI(MPI_Comm_size(world, &size));
    MPIDATA_TRY_MPI(MPI_Comm_rank(world, &job->rank));
    MPIDATA_TRY(mpidata_wait_all_here(world));
    MPIDATA_TRY_MPI(MPI_Comm_dup(world, &job->data));
    MPIDATA_TRY_MPI(MPI_Comm_set_errhandler(job->data, MPI_ERRORS_RETURN));
    MPIDATA_TRY(share_plan(job->data, plan_text, &none, &none, &job->plan));
    job->kind = mpidata_plan_role(&job->plan, job->rank, &job->index, &job->rank_in_group);
    MPIDATA_TRY(check_place(job, kind, size));
    MPIDATA_TRY(count_hosts(job));
    MPIDATA_TRY(unite_role(job));
    if (kind != MPIDATA_ROLE_SCHEDULER && kind != MPIDATA_ROLE_TRAINER) return MPIDATA_SUCCESS;
    MPIDATA_TRY(unite(job, 0, 1 + job->plan.trainers, MPIDATA_ROLES, &job->hub.comm));
    return mpidata_hub_open(&job->hub, &job->plan, job->kind, job->index);
}

/* Receive the ranks of the trainers from the scheduler. */
static int hear_of_trainers(mpidata_job *job) {
    const int n = job->plan.trainers;
    job->trainer_ranks = malloc((size_t)n * sizeof *job->trainer_ranks);
    if (!job->trainer_ranks) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for %d trainers.", n);
    return mpidata_check_mpi(MPI_Recv(job->trainer_ranks, n, MPI_INT, 0, MPIDATA_TAG_TRAINERS, job->data, MPI_STATUS_IGNORE),
                             "MPI_Recv");
}

/* In spawned ranks: `parent` connects only to the scheduler. */
static int join_spawned(MPI_Comm world, MPI_Comm parent, int kind, mpidata_job *job) {
    MPI_Comm bridge = MPI_COMM_NULL;
    int size = 0;
    MPIDATA_TRY_MPI(MPI_Comm_dup(world, &job->role));
    MPIDATA_TRY_MPI(MPI_Comm_set_errhandler(job->role, MPI_ERRORS_RETURN));
    MPIDATA_TRY_MPI(MPI_Comm_size(world, &size));
    MPIDATA_TRY_MPI(MPI_Comm_rank(world, &job->rank_in_group));
    MPIDATA_TRY_MPI(MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN));
    MPIDATA_TRY_MPI(MPI_Intercomm_merge(parent, 1, &bridge));
    MPIDATA_TRY_MPI(MPI_Comm_set_errhandler(bridge, MPI_ERRORS_RETURN));
    MPIDATA_TRY(share_plan(bridge, NULL, &job->kind, &job->index, &job->plan));
    job->spawned = 1;
    int wanted = job->kind == MPIDATA_ROLE_SOLVER ? job->plan.ranks_per_group : 1;
    if (kind != job->kind || size != wanted)
        return mpidata_error(MPIDATA_ERR_JOB, "%s %d was spawned with %d ranks of role %s. It needs %d of role %s.",
                             job->kind == MPIDATA_ROLE_SOLVER    ? "Group"
                             : job->kind == MPIDATA_ROLE_LOADER  ? "Loader"
                             : job->kind == MPIDATA_ROLE_LEARNER ? "Learner"
                                                                 : "Inference rank",
                             job->index, size,
                             mpidata_role_name(kind), wanted, mpidata_role_name(job->kind));
    MPIDATA_TRY(mpidata_wait_all_here(bridge));
    MPIDATA_TRY(mpidata_wait_all_here(bridge)); /* until it is this one's turn, if nobody has died */
    MPIDATA_TRY(mpidata_hub_unite(job->role, bridge, 0, 1, &job->data));
    MPIDATA_TRY_MPI(MPI_Comm_rank(job->data, &job->rank));
    /* MPI_Finalize would wait for connections that stay open. */
    MPIDATA_TRY_MPI(MPI_Comm_free(&bridge));
    MPIDATA_TRY_MPI(MPI_Comm_free(&parent));
    return hear_of_trainers(job);
}

int mpidata_job_greet(MPI_Comm comm, const char *plan_text, int role, int number) {
    MPIDATA_TRY(share_plan(comm, plan_text, &role, &number, NULL));
    return mpidata_wait_all_here(comm);
}

int mpidata_job_trainers_in(const mpidata_job *job, MPI_Comm comm, int *ranks) {
    MPI_Group all, those;
    const int n = job->plan.trainers;
    int *in_world = malloc((size_t)n * sizeof *in_world);
    if (!in_world) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for %d trainers.", n);
    for (int t = 0; t < n; t++) in_world[t] = 1 + t;
    (void)MPI_Comm_group(job->data, &all);
    (void)MPI_Comm_group(comm, &those);
    const int status = mpidata_check_mpi(MPI_Group_translate_ranks(all, n, in_world, those, ranks), "MPI_Group_translate_ranks");
    for (int t = 0; t < n; t++)
        if (ranks[t] == MPI_UNDEFINED) ranks[t] = -1;
    (void)MPI_Group_free(&all);
    (void)MPI_Group_free(&those);
    free(in_world);
    return status;
}

/* On the scheduler: send the ranks of the trainers to each rank that has joined. */
static int tell_of_trainers(const mpidata_job *job, MPI_Comm data) {
    int *ranks = malloc((size_t)job->plan.trainers * sizeof *ranks), n = 0, first = 0;
    if (!ranks) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for %d trainers.", job->plan.trainers);
    int status = mpidata_job_trainers_in(job, data, ranks);
    if (!status) status = mpidata_check_mpi(MPI_Comm_size(job->hub.comm, &first), "MPI_Comm_size");
    if (!status) status = mpidata_check_mpi(MPI_Comm_size(data, &n), "MPI_Comm_size");
    for (int rank = first; rank < n && !status; rank++)
        status = mpidata_check_mpi(MPI_Send(ranks, job->plan.trainers, MPI_INT, rank, MPIDATA_TAG_TRAINERS, data), "MPI_Send");
    free(ranks);
    return status;
}

int mpidata_job_join_group(const mpidata_job *job, MPI_Comm bridge, MPI_Comm *data) {
    int leads = job->kind == MPIDATA_ROLE_SCHEDULER;
    MPIDATA_TRY(mpidata_hub_unite(job->hub.comm, leads ? bridge : MPI_COMM_NULL, 1, 0, data));
    return leads ? tell_of_trainers(job, *data) : MPIDATA_SUCCESS;
}

static int forked;

static void in_child(void) { forked = 1; }

int mpidata_job_forked(void) { return forked; }

int mpidata_job_refuse_forked(void) {
    return mpidata_error(MPIDATA_ERR_ORDER, "This is a forked process, which has no part in the job: MPI survives no fork. "
                                            "Call libmpidata only in the parent, and end the child with _exit.");
}

/* Of a solver that has left: the communicator on which it learns that the job has ended. */
static MPI_Comm left = MPI_COMM_NULL;

/* Whether the scheduler has reported the end of the job, or has died. */
static int has_ended(void) {
    int here = 1;
    mpidata_stop stop = {.what = MPIDATA_STOP_LEAVE};
    while (here && stop.what != MPIDATA_STOP_OVER) {
        if (MPI_Iprobe(0, MPIDATA_TAG_STOP, left, &here, MPI_STATUS_IGNORE)) return 1;
        if (here && MPI_Recv(&stop, (int)sizeof stop, MPI_BYTE, 0, MPIDATA_TAG_STOP, left, MPI_STATUS_IGNORE)) return 1;
    }
    return stop.what == MPIDATA_STOP_OVER;
}

/* MPI_Finalize ends when all ranks have called it. A finished solver would keep a core busy in it while the trainers still
 * train, so it sleeps here first, with increasing pauses between checks. */
static void wait_for_end(void) {
    const double LEAST_S = 1e-3, MOST_S = 0.1, PART = 0.02;
    for (double since = mpidata_now(); left != MPI_COMM_NULL && !has_ended();) {
        double pause = PART * (mpidata_now() - since);
        pause = pause < LEAST_S ? LEAST_S : pause > MOST_S ? MOST_S : pause;
        (void)nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * pause)}, NULL);
    }
}

/* Called by MPI_Finalize: mpidata-rank limits its time, because it may hang after a death. A forked process ends here, because
 * mpi4py calls it after Python's exit handlers: it would wait forever for messages of its parent, and steal them. Its status
 * is not known here. */
static int finalize_begins(MPI_Comm comm, int key, void *value, void *state) {
    (void)comm, (void)key, (void)value, (void)state;
    if (getpid() != joined_by) _exit(0);
    mpidata_tell(MPIDATA_PULSE_FINALIZING);
    wait_for_end();
    return MPI_SUCCESS;
}

int mpidata_job_at_finalize(MPI_Comm_delete_attr_function *call) {
    int key = MPI_KEYVAL_INVALID;
    MPIDATA_TRY_MPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, call, &key, NULL));
    MPIDATA_TRY_MPI(MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL));
    MPIDATA_TRY_MPI(MPI_Comm_free_keyval(&key)); /* the attribute stays */
    return MPIDATA_SUCCESS;
}

int mpidata_job_join(MPI_Comm world, int kind, const char *plan_text, mpidata_job *job) {
    MPI_Comm parent = MPI_COMM_NULL;
    memset(job, 0, sizeof *job);
    job->data = job->role = job->hub.comm = MPI_COMM_NULL;
    if (!joined_by) (void)pthread_atfork(NULL, NULL, in_child);
    joined_by = getpid();
    mpidata_tell(MPIDATA_PULSE_ARRIVED);
    ignore_sigpipe();
    MPIDATA_TRY(mpidata_check_identity());
    MPIDATA_TRY(check_promised_size());
    MPIDATA_TRY_MPI(MPI_Comm_get_parent(&parent));
    int status = parent == MPI_COMM_NULL ? join_world(world, kind, plan_text, job) : join_spawned(world, parent, kind, job);
    if (status == MPIDATA_ERR_DIED)
        return mpidata_error(status, "A rank has died before all had joined the job, which cannot begin without it.");
    MPIDATA_TRY(status);
    MPIDATA_TRY(mpidata_job_at_finalize(finalize_begins));
    mpidata_beat();
    const int starts = kind >= MPIDATA_ROLE_SOLVER && kind != MPIDATA_ROLE_SERVER && kind != MPIDATA_ROLE_MATE;
    mpidata_tell(MPIDATA_PULSE_JOINED | (starts ? MPIDATA_PULSE_STARTING : 0u));
    return MPIDATA_SUCCESS;
}

void mpidata_job_leave(mpidata_job *job) {
    if (job->role != MPI_COMM_NULL) (void)MPI_Comm_free(&job->role);
    if (job->hub.comm != MPI_COMM_NULL) (void)MPI_Comm_free(&job->hub.comm);
    /* That of the world is left to MPI_Finalize: freeing it is collective over ranks that leave at different times. */
    if (job->spawned && job->data != MPI_COMM_NULL) (void)MPI_Comm_free(&job->data);
    if (job->kind == MPIDATA_ROLE_SOLVER && !job->spawned) left = job->data;
    mpidata_hub_close(&job->hub);
    free(job->dead_trainers);
    mpidata_answerers_close(&job->answerers);
    free(job->trainer_ranks);
    job->dead_trainers = NULL;
    job->trainer_ranks = NULL;
    mpidata_plan_free(&job->plan);
}

void mpidata_job_who(const mpidata_job *job, char *text, size_t size) {
    if (job->kind == MPIDATA_ROLE_SCHEDULER)
        (void)snprintf(text, size, "The scheduler (rank %d)", job->rank);
    else if (job->kind == MPIDATA_ROLE_TRAINER)
        (void)snprintf(text, size, "Trainer %d (rank %d)", job->index, job->rank);
    else if (job->kind == MPIDATA_ROLE_MATE)
        (void)snprintf(text, size, "Mate %d of trainer %d (rank %d)", job->rank_in_group, job->index, job->rank);
    else if (job->kind == MPIDATA_ROLE_SERVER)
        (void)snprintf(text, size, "Server %d (rank %d)", job->index, job->rank);
    else if (job->kind == MPIDATA_ROLE_INFERENCE)
        (void)snprintf(text, size, "Inference rank %d (%s %d)", job->index, job->spawned ? "spawned, rank" : "rank", job->rank);
    else if (job->kind == MPIDATA_ROLE_LEARNER)
        (void)snprintf(text, size, "Learner %d (%s %d)", job->index, job->spawned ? "spawned, rank" : "rank", job->rank);
    else if (job->kind == MPIDATA_ROLE_LOADER)
        (void)snprintf(text, size, "Loader %d (%s %d)", job->index, job->spawned ? "spawned, rank" : "rank", job->rank);
    else if (job->spawned)
        (void)snprintf(text, size, "Solver rank %d of the spawned group %d", job->rank_in_group, job->index);
    else
        (void)snprintf(text, size, "Solver rank %d (group %d, its rank %d)", job->rank, job->index, job->rank_in_group);
}

int mpidata_job_scheduler_gone(const mpidata_plan *plan) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/" MPIDATA_RUN_SUMMARY, plan->run) < (int)sizeof path && access(path, F_OK) == 0)
        return mpidata_error(MPIDATA_ERR_DIED, "The scheduler has ended the job; %s says why.", path);
    return mpidata_error(MPIDATA_ERR_DIED, "The scheduler (rank 0) has died. Resume the job with `mpidata run --resume %s`.",
                         plan->run);
}

int mpidata_job_listen(mpidata_job *job) {
    int here = 0;
    mpidata_stop stop = {0};
    int status = mpidata_check_mpi(MPI_Iprobe(0, MPIDATA_TAG_STOP, job->data, &here, MPI_STATUS_IGNORE), "MPI_Iprobe");
    if (status == MPIDATA_ERR_DIED) return mpidata_job_scheduler_gone(&job->plan);
    MPIDATA_TRY(status);
    if (!here) return MPIDATA_SUCCESS;
    MPIDATA_TRY_MPI(MPI_Recv(&stop, (int)sizeof stop, MPI_BYTE, 0, MPIDATA_TAG_STOP, job->data, MPI_STATUS_IGNORE));
    const int32_t what = stop.what;
    if (what == MPIDATA_STOP_LOST)
        return mpidata_error(MPIDATA_ERR_DIED, "The scheduler has given up %s %d.",
                             job->kind == MPIDATA_ROLE_LOADER      ? "loader"
                             : job->kind == MPIDATA_ROLE_INFERENCE ? "inference rank"
                             : job->kind == MPIDATA_ROLE_LEARNER   ? "learner"
                                                                   : "group",
                             job->index);
    if (what == MPIDATA_STOP_CANCEL) {
        job->cancelled.simulation = stop.simulation;
        job->cancelled.by_try = stop.by_try;
    } else if (what < MPIDATA_STOP_CANCEL)
        MPIDATA_TRY(mpidata_answerers_hear(&job->answerers, what));
    else if (what < MPIDATA_STOP_TRAINER_LOST)
        job->told_to_stop = 1;
    else if (job->dead_trainers && what - MPIDATA_STOP_TRAINER_LOST < job->plan.trainers)
        job->dead_trainers[what - MPIDATA_STOP_TRAINER_LOST] = 1;
    return MPIDATA_SUCCESS;
}

void mpidata_job_end_rank(void) {
    mpidata_tell(MPIDATA_PULSE_LOST);
    (void)fprintf(stderr, "mpidata: %s This rank ends.\n", mpidata_last_error());
    _exit(1);
}

void mpidata_job_await_end(mpidata_job *job) {
    for (; !mpidata_job_listen(job); mpidata_beat()) (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    mpidata_job_end_rank();
}

void mpidata_job_waits(mpidata_job *job, double since) {
    char path[4096];
    const mpidata_plan *plan = &job->plan;
    double allowed = plan->timeout_s < plan->start_timeout_s ? plan->timeout_s : plan->start_timeout_s;
    double now = mpidata_now(), last = since > job->touched ? since : job->touched;
    if (plan->ranks_per_group == 1 || !(allowed > 0) || now - last < allowed / 8) return;
    job->touched = now;
    int end = snprintf(path, sizeof path, "%s/" MPIDATA_RUN_WAITING, plan->run);
    if (end < 0 || end > (int)sizeof path - 32) return;
    (void)mkdir(path, 0755);
    (void)snprintf(path + end, sizeof path - (size_t)end, "/group-%d", job->index);
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0) return;
    (void)futimens(file, NULL);
    (void)close(file);
}

int mpidata_job_send_event(mpidata_job *job, const mpidata_event *event) {
    MPIDATA_TRY(mpidata_unsent_test(&job->unsent));
    mpidata_event own = *event;
    own.rank = job->rank;
    own.index = job->index;
    int status = mpidata_unsent_send(&job->unsent, &own, mpidata_event_bytes(&own), 0, MPIDATA_TAG_EVENT, job->data);
    if (status == MPIDATA_ERR_MEMORY) return mpidata_error(status, "Out of memory for a message to the scheduler.");
    MPIDATA_TRY(status);
    const mpidata_unsent *sent = job->unsent;
    double deadline = mpidata_now() + 1.0;
    mpidata_backoff backoff = {0};
    for (; job->unsent == sent && mpidata_now() < deadline; mpidata_backoff_pause(&backoff))
        MPIDATA_TRY(mpidata_unsent_test(&job->unsent));
    return MPIDATA_SUCCESS;
}
