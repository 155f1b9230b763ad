/* Joining the job: what the three roles do alike. */
#ifndef MPIDATA_JOB_H
#define MPIDATA_JOB_H

#include "scheduler.h"
#include "wire.h"

typedef struct {
    mpidata_plan plan;
    MPI_Comm data; /* of all ranks: samples, tasks, orders and events */
    MPI_Comm role; /* of the trainers, or of one group; the scheduler's own */
    int rank, index, rank_in_group;
    int kind; /* MPIDATA_ROLE_... */
} mpidata_job;

/* Is this process part of a job (started by mpidata-rank)? */
int mpidata_in_job(void);

/* Collective over world, in every role. plan_text: on the scheduler; NULL elsewhere. Blocks without spinning until all
 * ranks have come. */
int mpidata_job_join(MPI_Comm world, int kind, const char *plan_text, mpidata_job *job);
void mpidata_job_leave(mpidata_job *job);

/* Tell mpidata-rank, this program's parent, that it has left the job in order. */
void mpidata_job_left(void);

/* "Solver rank 5 (group 1, rank 0 of it)": for messages. */
void mpidata_job_who(const mpidata_job *job, int rank, char *text, size_t size);

/* Send an event to the scheduler and wait, for at most a second, until the message has left. */
int mpidata_job_send_event(const mpidata_job *job, mpidata_event *event);

/* An error that happened before the job was joined is kept, and reported once it is. */
void mpidata_remember_early_error(void);
const char *mpidata_early_error(void); /* "": none */

#endif
