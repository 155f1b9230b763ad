/* The state of this process's loader, shared by its thread, which makes all MPI calls, and the caller's. */
#ifndef MPIDATA_LOADER_STATE_H
#define MPIDATA_LOADER_STATE_H

#include "base/lock.h"
#include "job/job.h"
#include "job/link.h"
#include "parcel/inbox.h"
#include "parcel/sending.h"

/* What a trainer does: sends requests, will send no more, or is dead and sends none. */
enum { MPIDATA_TRAINER_ASKS = 0, MPIDATA_TRAINER_SAID_FAREWELL, MPIDATA_TRAINER_DEAD };

typedef struct {
    int open;
    mpidata_job job;
    pthread_t thread;
    mpidata_lock lock;
    pthread_cond_t news; /* to the caller: a request, a parcel that has left, the end, an error */
    pthread_cond_t wake; /* to the thread */

    /* All below under the lock. */
    int woken;
    mpidata_parcel_list requests;  /* that have come */
    mpidata_sending_list answers;  /* that are to be sent */
    mpidata_sending_list sent;     /* have left, or were to go to nobody */
    int under_way;                 /* answers that have not left */
    int leave;                     /* the scheduler wants this loader to */
    char *trainers;                /* what each does, as above */
    int quit;                      /* the thread is to end */
    int error;
    char error_text[MPIDATA_TEXT_MAX];
} mpidata_loader;

/* Its thread's main function; the argument is the mpidata_loader. */
void *mpidata_loader_thread(void *loader);

/* A loader that was given up, or whose scheduler has died, cannot go on: ends this process, without return. */
void mpidata_loader_end_lost(void);

#endif
