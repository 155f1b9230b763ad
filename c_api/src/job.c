#include "job.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pulse.h"
#include "wait.h"

#ifndef MPIDATA_BUILT_WITH
#define MPIDATA_BUILT_WITH "an MPI of unknown name"
#endif

static char early_error[MPIDATA_TEXT_MAX];

int mpidata_in_job(void) {
    const char *run = getenv("MPIDATA_RUN");
    return run && *run;
}

void mpidata_remember_early_error(void) {
    if (!*early_error) (void)snprintf(early_error, sizeof early_error, "%s", mpidata_last_error());
}

const char *mpidata_early_error(void) { return early_error; }

/* A transport that writes to a peer that has died must get an error, not a signal. */
static void ignore_sigpipe(void) {
    struct sigaction action;
    if (sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL) (void)signal(SIGPIPE, SIG_IGN);
}

/* The wrong mpirun, or srun with the wrong --mpi, starts N worlds of size 1 and says nothing. */
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
                             "or let `mpidata run` choose it.",
                             promised, size, MPIDATA_BUILT_WITH);
    }
    return MPIDATA_SUCCESS;
}

static int broadcast(void *buffer, int bytes, MPI_Comm comm) {
    MPI_Request request;
    MPIDATA_TRY_MPI(MPI_Ibcast(buffer, bytes, MPI_BYTE, 0, comm, &request));
    return mpidata_wait_request(&request, MPI_STATUS_IGNORE, NULL, NULL);
}

static int receive_plan(mpidata_job *job, const char *plan_text) {
    int bytes = plan_text ? (int)strlen(plan_text) + 1 : 0;
    MPIDATA_TRY(broadcast(&bytes, (int)sizeof bytes, job->data));
    if (bytes <= 0) return mpidata_error(MPIDATA_ERR_JOB, "Rank 0 of the job sent no plan.");
    char *text = malloc((size_t)bytes);
    if (!text) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory while receiving the plan.");
    if (plan_text) memcpy(text, plan_text, (size_t)bytes);
    int status = broadcast(text, bytes, job->data);
    if (!status) {
        text[bytes - 1] = '\0';
        status = mpidata_plan_parse(text, &job->plan);
    }
    free(text);
    return status;
}

static int check_place(const mpidata_job *job, int kind, int size) {
    if (size != job->plan.world)
        return mpidata_error(MPIDATA_ERR_JOB,
                             "The job was planned for %d ranks (1 scheduler, %d trainers, %d groups of %d), but has %d. "
                             "Start it with -n %d, or change trainers.ranks or solvers in the job file.",
                             job->plan.world, job->plan.trainers, job->plan.groups, job->plan.ranks_per_group, size,
                             job->plan.world);
    if (kind != job->kind)
        return mpidata_error(MPIDATA_ERR_JOB,
                             "Rank %d is a %s by the plan, but its program joined as a %s. Check trainers.program and "
                             "solvers.program in the job file.",
                             job->rank, mpidata_role_name(job->kind), mpidata_role_name(kind));
    return MPIDATA_SUCCESS;
}

/* The page that mpidata-rank reads, NULL where this program was not started by it. */
static mpidata_pulse *map_pulse(void) {
    const char *name = getenv(MPIDATA_PULSE_VARIABLE);
    int descriptor;
    unsigned long long inode;
    struct stat status;
    if (!name || sscanf(name, "%d:%llu", &descriptor, &inode) != 2) return NULL;
    if (fstat(descriptor, &status) || status.st_ino != inode || status.st_size < (off_t)sizeof(mpidata_pulse))
        return NULL;
    mpidata_pulse *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (page == MAP_FAILED) return NULL;
    if (page->magic == MPIDATA_PULSE_MAGIC) return page;
    (void)munmap(page, sizeof *page);
    return NULL;
}

/* Without it mpidata-rank could not tell a program that ended in order from one that merely ended with status 0. */
static void tell_parent(uint32_t flag) {
    static mpidata_pulse *pulse;
    if (!pulse) pulse = map_pulse();
    if (pulse) atomic_fetch_or(&pulse->flags, flag);
}

void mpidata_job_left(void) { tell_parent(MPIDATA_PULSE_LEFT); }

int mpidata_job_join(MPI_Comm world, int kind, const char *plan_text, mpidata_job *job) {
    memset(job, 0, sizeof *job);
    job->data = job->role = MPI_COMM_NULL;
    ignore_sigpipe();
    int size = 0;
    MPIDATA_TRY_MPI(MPI_Comm_size(world, &size));
    MPIDATA_TRY_MPI(MPI_Comm_rank(world, &job->rank));
    MPIDATA_TRY(check_promised_size());
    MPIDATA_TRY(mpidata_wait_all_here(world));
    MPIDATA_TRY_MPI(MPI_Comm_dup(world, &job->data));
    MPIDATA_TRY_MPI(MPI_Comm_set_errhandler(job->data, MPI_ERRORS_RETURN));
    MPIDATA_TRY(receive_plan(job, plan_text));
    job->kind = mpidata_plan_role(&job->plan, job->rank, &job->index, &job->rank_in_group);
    MPIDATA_TRY(check_place(job, kind, size));
    int color = kind == MPIDATA_ROLE_SOLVER ? 2 + job->index : kind;
    MPIDATA_TRY_MPI(MPI_Comm_split(job->data, color, job->rank, &job->role));
    MPIDATA_TRY_MPI(MPI_Comm_set_errhandler(job->role, MPI_ERRORS_RETURN));
    tell_parent(MPIDATA_PULSE_JOINED);
    return MPIDATA_SUCCESS;
}

void mpidata_job_leave(mpidata_job *job) {
    if (job->role != MPI_COMM_NULL) (void)MPI_Comm_free(&job->role);
    /* `data` is left to MPI_Finalize: freeing it is collective over ranks that leave at other times. */
    mpidata_plan_free(&job->plan);
}

void mpidata_job_who(const mpidata_job *job, int rank, char *text, size_t size) {
    int index, rank_in_group, role = mpidata_plan_role(&job->plan, rank, &index, &rank_in_group);
    if (role == MPIDATA_ROLE_SCHEDULER)
        (void)snprintf(text, size, "The scheduler (rank %d)", rank);
    else if (role == MPIDATA_ROLE_TRAINER)
        (void)snprintf(text, size, "Trainer %d (rank %d)", index, rank);
    else
        (void)snprintf(text, size, "Solver rank %d (group %d, its rank %d)", rank, index, rank_in_group);
}

int mpidata_job_send_event(const mpidata_job *job, mpidata_event *event) {
    event->rank = job->rank;
    event->index = job->index;
    MPI_Request request;
    MPIDATA_TRY_MPI(
        MPI_Isend(event, (int)mpidata_event_bytes(event), MPI_BYTE, 0, MPIDATA_TAG_EVENT, job->data, &request));
    double deadline = mpidata_now() + 1.0;
    mpidata_backoff backoff = {0};
    for (int done = 0; !done && mpidata_now() < deadline; mpidata_backoff_pause(&backoff))
        MPIDATA_TRY_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    return MPIDATA_SUCCESS;
}
