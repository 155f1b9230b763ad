/* The state of this process's trainer, shared by the receive thread and the caller's threads. */
#ifndef MPIDATA_STATE_H
#define MPIDATA_STATE_H

#include "base/lock.h"
#include "buffer/buffer.h"
#include "buffer/ledger.h"
#include "buffer/slots.h"
#include "buffer/windows.h"
#include "job/job.h"
#include "journal/journal.h"
#include "published/versions.h"
#include "stream/parcel_queue.h"
#include "stream/phase.h"
#include "stream/record_queue.h"
#include "field_statistics/moments_exchange.h"
#include "wire/statistics.h"

typedef struct mpidata_outgoing {
    mpidata_event event;
    struct mpidata_outgoing *next;
} mpidata_outgoing;

typedef struct mpidata_pinned mpidata_pinned; /* of trainer/snapshot.c */
void mpidata_pinned_free(mpidata_pinned *pinned);

/* Checkpoints are numbered by the scheduler. */
typedef struct {
    int64_t wanted; /* the newest that the scheduler has ordered */
    int64_t agreed; /* the newest whose batch the trainers have agreed on */
    int64_t at;     /* this batch */
    int due;        /* the snapshot is still to be taken */
    int joining;    /* this trainer has just taken a place, and has made no agreement with the others yet */
    int64_t before; /* the newest that the others had agreed on before that */
    int again;      /* without a stream: all report their batches once more, because the living have changed */
    int asking;     /* the batch is being agreed on, and no further one is drawn or counted */
    mpidata_pinned *pinned; /* a snapshot that is being written */
} mpidata_checkpoint;

enum { MPIDATA_DRAWS_MOST = 64 };

/* buffer.repeats: the budget of draws. */
typedef struct {
    int64_t base, base_by_all; /* batches of this trainer, and total of all, at this start of the run */
    int64_t received, said;    /* samples of all trainers, as last agreed on, and this one's share of them */
    int64_t inherited;         /* samples in this trainer's share that dead or other trainers have received */
    int64_t *draws;            /* if trainers may die: by trainer, samples that it has trained on since */
    double again;              /* when the trainers agree anew if they are ahead of the budget */
    int64_t excess;            /* batches at the end beyond the budget */
} mpidata_budget;

/* For jobs in which the others continue when a trainer dies, and spares join (stream/deaths/adoption.h). */
typedef struct {
    int on;         /* this is such a job, and has a stream */
    int *told, n_told; /* codes of changes of training trainers from the scheduler; those of plan.changes are processed */
    char *left_out; /* by trainer: the others have met without it */
    int greets;     /* take part in the next agreement in any case */
    int over;       /* the trainers have met at the end of the stream, which is final */
    int rests;      /* this one no longer trains: the others continue, and it sends them nothing */
    int64_t *trained, n_trained, trained_allocated; /* pairs of simulation and step of samples that are not in the ledger yet */
    int64_t *packed; /* what was last passed to a joining trainer */
} mpidata_adoption;

typedef enum {
    MPIDATA_KEEPS,     /* its samples are its own */
    MPIDATA_GIVES,     /* they go to trainers that draw */
    MPIDATA_GAVE,      /* all of them have gone there */
    MPIDATA_DRAWS_LATE /* it has started to draw after all: new samples are its own again */
} mpidata_giving_phase;

/* Samples of a trainer that draws nothing go to those that draw (stream/giving/giving.h). */
typedef struct {
    int asked;         /* this trainer has requested a batch */
    double asks_since; /* since when it waits for one; s; 0: it does not */
    mpidata_giving_phase phase; /* changed only by the receive thread */
    char *givers;   /* by trainer: the scheduler has reported that it gives; NULL: none does */
    int n_givers;
    char *owed;     /* by trainer: it must still be told that nothing more comes from here */
    int coming;     /* trainers from which samples may still come here */
    int64_t taken;  /* samples that have come from such trainers */
} mpidata_giving;

typedef struct {
    int64_t from; /* batch */
    int trainers, number; /* number of trainers that share it; place of this one */
} mpidata_share;

/* Batches that all trainers draw together (stream/shares/shares.h). */
typedef struct {
    int64_t total;        /* samples of all trainers in a batch; 0: each has `batch` */
    int trainers, number; /* the current ones */
    int changes;          /* the trainers have met: from where on they share anew is not agreed on yet */
    int anew;             /* one of them has then joined: granted batches are granted anew, whatever their sizes */
    mpidata_share *list;  /* by batch */
    int64_t n, allocated;
} mpidata_shares;

typedef struct {
    mpidata_job job;
    MPI_Comm agreement; /* of the trainers, only for the receive thread */
    MPI_Comm living;    /* under the lock: its replacement, after a death; else MPI_COMM_NULL */
    pthread_t thread;
    mpidata_lock lock;
    pthread_cond_t news; /* to callers: tickets, validation, parcels, end, error */
    pthread_cond_t wake; /* to the receive thread: room, a ticket wanted, something to send */
    int woken;

    /* All below under the lock. */
    int held;     /* callers that keep the receive thread from making calls of MPI, ... */
    int alone;    /* ... and how many of them no longer wait for that */
    int in_round; /* it is making calls of MPI */
    int joins;    /* it is about to join spawned ranks, and nobody may hold it */
    mpidata_slots slots;
    mpidata_windows windows; /* if samples are windows */
    mpidata_buffer buffer;
    mpidata_ledger ledger; /* only the receive thread changes it, and reads it without the lock */
    /* Samples are numbered as their slots are, or as windows. */
    int64_t *arrived; /* whole samples that wait for room in the buffer, oldest first */
    int64_t n_arrived, arrived_allocated;
    int64_t *validation; /* samples of the validation simulations */
    int64_t n_validation, validation_allocated;
    int validation_whole;

    int64_t batch;   /* samples per draw, or the most if they are a share; 0: not started */
    mpidata_shares shares;
    int past_cache;  /* batches are larger than the cache: copied past it */
    struct mpidata_drawn_step *next_batch; /* drawn and pinned, and not copied yet; NULL: none */
    int64_t last_size; /* samples of the last drawn batch */
    struct {
        mpidata_try_constants **list;
        int64_t n, allocated;
    } drawn_with; /* constants of the samples of the last batch that was copied */
    int64_t drawn;   /* batches */
    int64_t ahead;   /* how many of these were drawn ahead of the training loop, which has not had them yet */
    int draws_ahead; /* whether batches are drawn ahead */
    int64_t began;   /* how many of these another trainer, or an earlier start, has drawn */
    int64_t granted; /* batches that every trainer can draw */
    int end_of_stream; /* the scheduler has reported that no more samples come */
    mpidata_adoption adoption;
    mpidata_giving giving;
    int waiting;     /* a draw waits */
    double waited;   /* total wait of draws before the current one; s */
    double waits_since; /* start of the current wait; s */
    int slots_in_use; /* at that time, by receives that have not ended */
    int64_t *retired; /* last drawn samples, kept to be repeated (tail: repeat) */
    int64_t n_retired, next_retired, retired_allocated;
    int64_t *restored; /* slots with steps of a checkpoint, for its windows, until the receive thread is started */
    int64_t n_restored, restored_allocated;
    mpidata_checkpoint checkpoint;
    int64_t trainers_order, trainers_wanted; /* the newest order of the number of trainers, and that number */
    mpidata_budget budget;
    mpidata_journal journal;
    mpidata_scales scales;
    int begun; /* the receive thread has been started */

    mpidata_phase phase;
    mpidata_record record;
    mpidata_parcel_queue parcels; /* to and from loaders */
    mpidata_versions versions;    /* published */
    mpidata_statistics statistics;
    int64_t by_draws[MPIDATA_DRAWS_MOST + 1]; /* samples of this start by how often they were drawn; the last: or more */
    mpidata_outgoing *outbox, **outbox_end;
    int error;
    char error_text[MPIDATA_TEXT_MAX];
} mpidata_trainer;

/* Keep the last error of this thread as the trainer's, and report it to the scheduler. */
void mpidata_trainer_fail_locked(mpidata_trainer *trainer, int status);

/* Queue an event for the receive thread to send. */
int mpidata_trainer_post_locked(mpidata_trainer *trainer, const mpidata_event *event);

/* Report a value under a name, with the number of the last batch; it joins values that wait to be sent, if there are any. */
int mpidata_trainer_post_report_locked(mpidata_trainer *trainer, const char *name, double value);

/* Batches that the training loop has had. */
int64_t mpidata_batches_had_locked(const mpidata_trainer *trainer);

/* Wake the receive thread. */
void mpidata_trainer_wake_locked(mpidata_trainer *trainer);

/* Sleep until there is news or the deadline has passed; returns 0 at the deadline. */
int mpidata_trainer_wait_locked(mpidata_trainer *trainer, double deadline);
double mpidata_trainer_deadline(double timeout_s);

/* Initialise the lock and its conditions, in zeroed memory. */
int mpidata_trainer_open_state(mpidata_trainer *trainer);
void mpidata_trainer_close_state(mpidata_trainer *trainer);

/* The same, and allocate room for samples; the plan and this trainer's number are known. */
int mpidata_trainer_open_memory(mpidata_trainer *trainer);

/* This process's trainer, or an error. */
int mpidata_the_trainer(mpidata_trainer **trainer);
void mpidata_trainer_set(mpidata_trainer *trainer);

/* Report an error that ends the job; MPIDATA_ERR_ORDER if this process is not a trainer. */
int mpidata_report_error_of_trainer(const char *sentence);

#endif
