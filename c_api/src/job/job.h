/* Joining the job: the code of all roles. */
#ifndef MPIDATA_JOB_H
#define MPIDATA_JOB_H

#include "job/answerers.h"
#include "job/hub.h"
#include "job/unsent.h"
#include "wire/messages.h"

typedef struct {
    mpidata_plan plan;
    /* For samples, tasks, orders and events: all ranks of the world; in a spawned group, the scheduler, the trainers that lived
     * then, and this group. In both, rank 0 is the scheduler, and the trainers follow. */
    MPI_Comm data;
    MPI_Comm role; /* of the trainers, or of one group; the scheduler's own, a loader's, server's or mate's own */
    mpidata_hub hub;
    int *trainer_ranks; /* in data, by trainer; -1: died before this one was spawned; NULL: they follow rank 0 */
    int rank, index, rank_in_group;
    int kind; /* MPIDATA_ROLE_... */
    int spawned;
    int one_host; /* whether the ranks of the world are all on one host */
    int told_to_stop; /* the scheduler wants this group, loader, inference rank or learner to leave */
    mpidata_answerers answerers; /* solvers: the inference ranks that the scheduler has reported */
    struct {
        int64_t simulation, by_try; /* from 1; 0: none yet */
    } cancelled; /* rank 0 of a group: the last one that was reported to it */
    char *dead_trainers; /* solvers, scheduler: by trainer, if the others continue; NULL: the death of one ends the job */
    double touched;   /* when mpidata_job_waits last left its sign */
    mpidata_unsent *unsent; /* events that have not left, the newest first */
} mpidata_job;

/* Whether this process is part of a job (started by mpidata-rank). */
int mpidata_in_job(void);

/* Collective over world, in every role. plan_text: on the scheduler; NULL elsewhere. Blocks without spinning until all
 * ranks have come. */
int mpidata_job_join(MPI_Comm world, int kind, const char *plan_text, mpidata_job *job);
void mpidata_job_leave(mpidata_job *job);

/* Report to mpidata-rank, this program's parent, that it has left the job in order. */
void mpidata_job_left(void);

/* Let MPI_Finalize make this call before anything else. */
int mpidata_job_at_finalize(MPI_Comm_delete_attr_function *call);

/* Whether this is a forked child of a process of the job. MPI does not survive forks: messages of a child break other ranks. */
int mpidata_job_forked(void);
int mpidata_job_refuse_forked(void); /* MPIDATA_ERR_ORDER, with the sentence */

/* Scheduler: greet a spawned group or loader: send it the plan, its role and its number. comm: the merged communicator of
 * MPI_Comm_spawn, in which the scheduler is rank 0. Blocks (without spinning) until its ranks have answered; they are then
 * about to join. */
int mpidata_job_greet(MPI_Comm comm, const char *plan_text, int role, int number);

/* Scheduler and trainers: join a greeted group or loader, which also calls this; *data is the communicator with it. Collective
 * over the hub and the group; blocks for some milliseconds. bridge: the greeted communicator on the scheduler, else unused. */
int mpidata_job_join_group(const mpidata_job *job, MPI_Comm bridge, MPI_Comm *data);

/* Ranks of the trainers in a communicator that has been joined, by trainer; -1: it is not in it. */
int mpidata_job_trainers_in(const mpidata_job *job, MPI_Comm comm, int *ranks);

/* Rank of a trainer in job->data. */
static inline int mpidata_job_trainer_rank(const mpidata_job *job, int trainer) {
    return job->trainer_ranks ? job->trainer_ranks[trainer] : 1 + trainer;
}

/* This rank in a sentence: "Solver rank 5 (group 1, its rank 0)". */
void mpidata_job_who(const mpidata_job *job, char *text, size_t size);

/* Solver or loader: check whether the scheduler wants this rank to stop (job->told_to_stop) or has given up its group
 * (MPIDATA_ERR_DIED). */
int mpidata_job_listen(mpidata_job *job);

/* Solver, loader and trainer: make the error (MPIDATA_ERR_DIED) that the scheduler has ended the job, or has died. */
int mpidata_job_scheduler_gone(const mpidata_plan *plan);

/* End this process with status 1 and print the last error: it cannot continue, and others learn of its death. */
_Noreturn void mpidata_job_end_rank(void);

/* A server or mate that cannot continue without a dead rank: sleep until this process is ended with the job, or end it if the
 * scheduler has died. */
_Noreturn void mpidata_job_await_end(mpidata_job *job);

/* Send an event to the scheduler and wait, for at most a second, until the message has left. */
int mpidata_job_send_event(mpidata_job *job, const mpidata_event *event);

/* Solver: it has been waiting since `since` for the trainers. This periodically touches <run>/waiting/group-N, so that the
 * other ranks of its group, which wait for it elsewhere, are not considered hung. */
void mpidata_job_waits(mpidata_job *job, double since);

#endif
