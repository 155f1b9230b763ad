/* The state of this process's trainer, shared by the receive thread and the caller's threads. */
#ifndef MPIDATA_TRAINER_STATE_H
#define MPIDATA_TRAINER_STATE_H

#include <pthread.h>

#include "receive/assembly.h"
#include "buffer/buffer.h"
#include "job/job.h"
#include "buffer/ledger.h"
#include "trainer/record.h"
#include "buffer/slots.h"
#include "trainer/snapshot.h"
#include "trainer/trainer.h"

typedef struct mpidata_outgoing {
    mpidata_event event;
    struct mpidata_outgoing *next;
} mpidata_outgoing;

typedef struct mpidata_pinned mpidata_pinned;

/* Checkpoints are numbered by the scheduler. */
typedef struct {
    int64_t wanted; /* the newest that the scheduler has ordered */
    int64_t agreed; /* the newest whose batch the trainers have agreed on */
    int64_t at;     /* this batch */
    int due;        /* the snapshot is still to be taken */
    mpidata_pinned *pinned; /* a snapshot that is being written */
} mpidata_checkpoint;

typedef struct {
    mpidata_job job;
    MPI_Comm agreement; /* of the trainers, for the receive thread alone */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news; /* to callers: tickets, validation, end, error */
    pthread_cond_t wake; /* to the receive thread: room, a ticket wanted, something to send */
    int woken;

    /* All below under the lock. */
    mpidata_slots slots;
    mpidata_buffer buffer;
    mpidata_ledger ledger; /* the receive thread, which alone changes it, reads it without the lock */
    int64_t *arrived; /* whole samples that wait for room in the buffer, oldest first */
    int64_t n_arrived, arrived_allocated;
    int64_t *validation; /* slots of the validation samples */
    int64_t n_validation, validation_allocated;
    int validation_whole;

    int64_t batch;   /* samples a draw, 0: not started */
    int past_cache;  /* batches are larger than the cache: copied past it */
    int64_t drawn;   /* batches */
    int64_t granted; /* batches that every trainer can draw */
    int finished;    /* no tickets come any more */
    int waiting;     /* a draw waits */
    int told_end;    /* a draw has given MPIDATA_END */
    int left;        /* the caller left the stream, or closed it */
    int stopping;    /* the job is stopping: drop what arrives */
    int all_gone;
    int thread_done;
    int slots_in_use; /* then, by receives that have not ended */
    int64_t *retired; /* last drawn slots, kept to be repeated (tail: repeat) */
    int64_t n_retired, next_retired, retired_allocated;
    mpidata_checkpoint checkpoint;
    int begun; /* the receive thread has been started */

    mpidata_record record;
    mpidata_statistics statistics;
    mpidata_outgoing *outbox, **outbox_end;
    int error;
    char error_text[MPIDATA_TEXT_MAX];
} mpidata_trainer;

/* Under the lock: keep the last error of this thread as the trainer's, and report it to the scheduler. */
void mpidata_trainer_fail(mpidata_trainer *trainer, int status);

/* Under the lock: queue an event for the receive thread to send. */
int mpidata_trainer_post(mpidata_trainer *trainer, const mpidata_event *event);

/* Under the lock: queue what the scheduler is to know of this trainer. */
int mpidata_trainer_post_status(mpidata_trainer *trainer);

/* Under the lock: make the receive thread look again at once. */
void mpidata_trainer_wake(mpidata_trainer *trainer);

/* Under the lock: batches that this trainer can be sure to draw, counted from the start. *final: it is all there is. */
int64_t mpidata_trainer_guaranteed(const mpidata_trainer *trainer, int *final);

/* This process's trainer, or an error. */
int mpidata_the_trainer(mpidata_trainer **trainer);

/* Under the lock: the statistics with their present figures. */
mpidata_statistics mpidata_trainer_statistics_now(const mpidata_trainer *trainer);

/* Under the lock, for checkpoints: the scheduler orders one; the trainers have agreed on its batch; the next draw is the
 * place for it; tell the scheduler where none can be taken any more. */
void mpidata_checkpoint_want(mpidata_trainer *trainer, int64_t number);
void mpidata_checkpoint_agree(mpidata_trainer *trainer, int64_t number, int64_t batch);
int mpidata_checkpoint_is_due(mpidata_trainer *trainer);
int mpidata_checkpoint_give_up(mpidata_trainer *trainer);
void mpidata_pinned_free(mpidata_pinned *pinned);

/* The receive thread's main function; its argument is the mpidata_trainer. */
void *mpidata_receive_thread(void *trainer);

enum { MPIDATA_AGREEMENT_ENTRIES = 8 };

/* Agreement of the trainers on how many batches all of them can draw; the receive thread calls it again and again. */
typedef struct {
    MPI_Request request;
    int under_way;
    int64_t mine[MPIDATA_AGREEMENT_ENTRIES], all[MPIDATA_AGREEMENT_ENTRIES];
} mpidata_agreement;

int mpidata_agree(mpidata_trainer *trainer, mpidata_agreement *agreement, int *did);

#endif
