/* The state of this process's loader or inference rank, shared by its thread and the caller's. MPI calls are made in
 * rounds, by one of the two at a time: a loader's by the thread alone; an inference rank's by the caller while that
 * waits or answers, as each handing over between threads would be a part of what a solver waits for, else by the
 * thread. */
#ifndef MPIDATA_LOADER_STATE_H
#define MPIDATA_LOADER_STATE_H

#include <stdatomic.h>

#include "base/lock.h"
#include "job/job.h"
#include "job/link.h"
#include "parcel/inbox.h"
#include "parcel/sending.h"
#include "published/asking.h"

/* What a trainer does: sends requests, will send no more, or is dead and sends none. */
enum { MPIDATA_TRAINER_ASKS = 0, MPIDATA_TRAINER_SAID_FAREWELL, MPIDATA_TRAINER_DEAD };

typedef struct {
    int open;
    mpidata_job job;
    pthread_t thread;
    mpidata_lock rounds; /* held by who makes one; taken before `lock` */
    struct mpidata_loader_server *server; /* of rounds */
    atomic_int driven;   /* the caller makes rounds */
    int n_peers;         /* numbers of who asks, from 0: trainers; for an inference rank or learner, ranks of its
                          * communicator */
    mpidata_lock lock;
    pthread_cond_t news; /* to the caller: a request, a parcel that has left, the end, an error */
    pthread_cond_t wake; /* to the thread */

    /* All below under the lock. */
    int woken;
    mpidata_parcel_list requests;  /* that have come */
    mpidata_sending_list answers;  /* that are to be sent */
    mpidata_sending_list sent;     /* have left, or were to go to nobody */
    int under_way;                 /* answers that have not left */
    int64_t asks_than;             /* of an inference rank: to ask for what was published later than this version; -1:
                                    * not */
    int asking;                    /* an answer to that is to come */
    mpidata_parcel *published;     /* which has come; NULL: nothing */
    int leave;                     /* the scheduler wants this loader to */
    char *trainers;                /* what each does, as above */
    int quit;                      /* the thread is to end */
    int error;
    char error_text[MPIDATA_TEXT_MAX];
} mpidata_loader;

/* Make a round of MPI calls; *did becomes 1 if there was anything to do. An error is kept for the caller, too. */
int mpidata_loader_round(mpidata_loader *loader, int *did);

/* Of a round only what sends answers, for which somebody waits. */
int mpidata_loader_send(mpidata_loader *loader);

/* Take back what it has asked for of what is published; returns whether nothing of it is under way any more. */
int mpidata_loader_asks_no_more(mpidata_loader *loader);

/* Get ready for rounds, and free what they need. */
int mpidata_loader_open_server(mpidata_loader *loader);
void mpidata_loader_close_server(mpidata_loader *loader);

/* Its thread's main function; the argument is the mpidata_loader. */
void *mpidata_loader_thread(void *loader);

#endif
