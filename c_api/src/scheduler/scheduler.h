/* Scheduler side of the library: messages in, messages out. What to dispatch to whom is decided by its caller
 * (mpidata/scheduler/scheduler.py). Not installed. One thread. Functions return the codes of mpidata.h. */
#ifndef MPIDATA_SCHEDULER_H
#define MPIDATA_SCHEDULER_H

#include "mpidata.h"

enum {
    MPIDATA_EVENT_NEXT = 1,     /* group asks for a simulation; simulation/steps: the one it closes (-1: none), failed, text */
    MPIDATA_EVENT_FINALIZED,    /* group has left; simulation/steps/failed as for NEXT */
    MPIDATA_EVENT_HELD,         /* trainer holds every step it was to expect of `simulation`; steps: by which try */
    MPIDATA_EVENT_STATUS,       /* trainer's `statistics`; starved, full */
    MPIDATA_EVENT_REPORT,       /* trainer reports value under the name in text */
    MPIDATA_EVENT_STOP,         /* trainer left its loop early; failed, text */
    MPIDATA_EVENT_GOODBYE,      /* trainer has closed its stream after drawing everything, or after a stop */
    MPIDATA_EVENT_ERROR,        /* a rank reports an error that ends the job: text, the whole sentence */
    MPIDATA_EVENT_CHECKPOINT_WANTED, /* trainer's script asks for one: statistics[0], the batch it is at */
    MPIDATA_EVENT_CHECKPOINT_WRITTEN, /* trainer has written its part of checkpoint `steps`: statistics[0], the batch; [1],
                                        bytes; text, SHA-256; or failed (2: the loop is over), and text says why */
    MPIDATA_EVENT_DIED,         /* a rank has died, as MPI says: index, and of a solver steps: its rank in the group */
    MPIDATA_EVENT_RECORD_STOPPED /* trainer records no more: text, the whole sentence */
};

enum { MPIDATA_SENDER_TRAINER = 1, MPIDATA_SENDER_SOLVER = 2 };

/* How a simulation has failed: its own code gave it up, or this try of it was no good. */
enum { MPIDATA_GIVEN_UP = 1, MPIDATA_TRY_FAILED = 2 };

typedef struct {
    int32_t kind;
    int32_t rank;        /* of the sender in the job's world, or in its link with a spawned group */
    int32_t index;       /* group, or trainer */
    int32_t failed;      /* NEXT, FINALIZED: MPIDATA_GIVEN_UP or _TRY_FAILED; STOP: the script failed */
    int64_t simulation;
    int64_t steps;
    int32_t starved;     /* STATUS: a draw waits for samples */
    int32_t full;        /* STATUS: the buffer has no room */
    int32_t ended;       /* STATUS: the script knows that the stream is over */
    int32_t sender;      /* MPIDATA_SENDER_...: what index counts */
    int64_t statistics[7]; /* STATUS: mpidata_statistics of trainer.h, in its order */
    double value;        /* REPORT */
    char text[2048];     /* UTF-8, ends with 0 */
} mpidata_event;

/* Join the job as its scheduler and give every rank the plan. Collective over world; blocks without spinning. */
int mpidata_scheduler_open(MPI_Fint world, const char *plan);

/* Next event, MPIDATA_SUCCESS; or MPIDATA_ERR_AGAIN if none came within timeout_s. Sleeps while it waits. */
int mpidata_scheduler_poll(mpidata_event *event, double timeout_s);

/* Answer a group's NEXT: run `simulation` with its parameters (n_parameters float64). */
int mpidata_scheduler_dispatch(int group, int64_t simulation, int validation, const double *parameters);

/* Answer a group's NEXT: there are no more. */
int mpidata_scheduler_no_more(int group);

/* Tell all trainers that `simulation` has `steps` steps in all, says its try number `try`; each answers HELD when it holds
 * its own. */
int mpidata_scheduler_expect(int64_t simulation, int64_t steps, int try);

/* Tell all trainers that no more samples will come. */
int mpidata_scheduler_end_of_stream(void);

/* Tell all trainers and groups to leave: draws and steps give MPIDATA_END from now. */
int mpidata_scheduler_stop(void);

/* Tell a trainer whose buffer is full to take `samples` more than its capacity, because another one starves. */
int mpidata_scheduler_relieve(int trainer, int64_t samples);

/* Tell all trainers to write a checkpoint of this number, greater than all before; each answers CHECKPOINT_WRITTEN. */
int mpidata_scheduler_checkpoint(int64_t number);

/* Tell all trainers that every validation sample that will come is there. */
int mpidata_scheduler_validation(void);

/* Give a group up: its ranks end at their next call, the trainers drop what it has not finished and what may still come. */
int mpidata_scheduler_lose(int group);

/* A spawned group has left in order: its communicator is freed. */
int mpidata_scheduler_gone(int group);

/* Are all ranks of the world on one host? */
int mpidata_scheduler_one_host(int *yes);

/* How a group that MPI_Comm_spawn has started joins the job. greet and join may be called from another thread than the
 * rest, one group at a time in join; the order is greet, invite, join, link.
 * greet: give it the plan and its number. intercomm, *bridge: Fortran handles; blocks until its ranks have answered.
 * invite: tell the trainers to join it. join: do so with them, blocks for milliseconds; *comm is the new communicator, a
 * Fortran handle. link: listen to it. */
int mpidata_scheduler_greet(MPI_Fint intercomm, int group, MPI_Fint *bridge);
int mpidata_scheduler_invite(int group);
int mpidata_scheduler_join(MPI_Fint bridge, MPI_Fint *comm);
int mpidata_scheduler_link(int group, MPI_Fint comm);

/* Tell all trainers that every group has left and every trainer has said goodbye: nothing is in flight any more. */
int mpidata_scheduler_all_gone(void);

/* End all ranks at once with this exit status (MPI_Abort). Does not return. */
void mpidata_scheduler_abort(int status);

/* Leave the job in order: after all_gone. */
int mpidata_scheduler_close(void);

#endif
