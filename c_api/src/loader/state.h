/* The state of this process's loader or inference rank, shared by its thread and the caller's. MPI calls are made in rounds,
 * by one of the two at a time: for a loader only by the thread; for an inference rank by the caller while it waits or
 * answers, because each switch between threads would add to the time that a solver waits, else by the thread. */
#ifndef MPIDATA_LOADER_STATE_H
#define MPIDATA_LOADER_STATE_H

#include <stdatomic.h>

#include "base/lock.h"
#include "job/job.h"
#include "job/link.h"
#include "parcel/inbox.h"
#include "parcel/sending.h"
#include "published/asking.h"

/* State of a trainer: it sends requests, will send no more, or is dead and sends none. */
enum { MPIDATA_TRAINER_ASKS = 0, MPIDATA_TRAINER_SAID_FAREWELL, MPIDATA_TRAINER_DEAD };

typedef struct {
    int open;
    mpidata_job job;
    pthread_t thread;
    mpidata_lock rounds; /* held while making one; taken before `lock` */
    struct mpidata_loader_server *server; /* of rounds */
    atomic_int driven;   /* the caller makes rounds */
    int n_peers;         /* number of peers that ask: trainers; for an inference rank or learner, ranks of its
                          * communicator */
    mpidata_lock lock;
    pthread_cond_t news; /* to the caller: a request, a parcel that has left, the end, an error */
    pthread_cond_t wake; /* to the thread */

    /* All below under the lock. */
    int woken;
    mpidata_parcel_list requests;  /* that have come */
    mpidata_sending_list answers;  /* to be sent */
    mpidata_sending_list sent;     /* have left, or have no receiver */
    int under_way;                 /* answers that have not left */
    int64_t asks_than;             /* for an inference rank: ask for arrays that are newer than this version; -1: do
                                    * not */
    int asking;                    /* an answer to that is pending */
    mpidata_parcel *published;     /* that answer, if it has come; else NULL */
    int leave;                     /* the scheduler wants this loader to leave */
    char *trainers;                /* state of each, as above */
    int quit;                      /* the thread must end */
    int error;
    char error_text[MPIDATA_TEXT_MAX];
} mpidata_loader;

/* Make a round of MPI calls; *did becomes 1 if there was work. An error is also kept for the caller. */
int mpidata_loader_round(mpidata_loader *loader, int *did);

/* Make only that part of a round that sends answers, for which somebody waits. */
int mpidata_loader_send(mpidata_loader *loader);

/* Withdraw its request for published arrays; returns whether nothing of it is in flight any longer. */
int mpidata_loader_asks_no_more(mpidata_loader *loader);

/* Prepare for rounds, and free their resources. */
int mpidata_loader_open_server(mpidata_loader *loader);
void mpidata_loader_close_server(mpidata_loader *loader);

/* Its thread's main function; the argument is the mpidata_loader. */
void *mpidata_loader_thread(void *loader);

#endif
