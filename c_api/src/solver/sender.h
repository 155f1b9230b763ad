/* What sends the samples of a solver rank: a few messages in flight, so that an overloaded trainer costs bounded memory.
 *
 * A piece is staged while its fields are put, and sent when its sample is committed. Where a rank's parts are small, a
 * piece goes at once only if nothing is under way to its trainer; else it waits with those that follow it, and they share
 * a message (as in J. Nagle's RFC 896). So does one that comes right after the one before it, as more will follow, until
 * they are some tens of kilobytes or a fraction of a millisecond old: a fast solver pays for few messages, a slow one
 * waits for nothing. */
#ifndef MPIDATA_SENDER_H
#define MPIDATA_SENDER_H

#include "base/arena.h"
#include "buffer/copy.h"
#include "calls/put_check.h"
#include "job/job.h"
#include "solver/lent.h"
#include "wire/wire.h"

typedef struct {
    mpidata_block block;
    const void *lent; /* array of mpidata_iput, sent from where it is; NULL: staged */
    size_t offset;    /* of the staged payload */
    size_t bytes;
    mpidata_map *map; /* by which it is put, or NULL */
    int along;    /* with the header, not in a message of its own ... */
    size_t place; /* ... where it begins in the payload there */
} mpidata_staged_block;

typedef struct {
    char *header;
    size_t header_capacity;
    char *payload;
    size_t payload_capacity, payload_bytes;
    mpidata_staged_block *blocks;
    int n_blocks;
    int64_t blocks_capacity;
    mpidata_moments *moments; /* of the blocks, where there are statistics */
    int64_t n_moments, moments_capacity;
    int n_maps;    /* blocks that are put by one */
    int under_way; /* messages; 0: not in flight */
    int trainers[2], n_trainers; /* to whom it goes */
} mpidata_staged_piece;

/* The constants of the present simulation: a piece of their own, kept and sent to each trainer before the first other piece. */
typedef struct {
    char *sent;          /* by trainer; NULL: the job has none */
    size_t header_bytes; /* 0: not written yet */
    int over;            /* the simulation has ended: the next use is for another one */
} mpidata_kept_constants;

/* Messages under way. All are tested with one call, as each call of MPI that finds nothing done may give the core away. */
typedef struct {
    MPI_Request *requests;
    struct { int piece, trainer; mpidata_map *map; } *of; /* what each is of, a piece or a map, and to whom it goes */
    int *done;
    MPI_Status *statuses;
    int n;
    int64_t allocated;
} mpidata_flight;

/* Small pieces that wait for their trainer's last message, or for more of them. */
typedef struct {
    char *memory;
    size_t capacity, bytes;
    int in_flight[2]; /* messages under way to this trainer, by pool of their pieces */
    double since;  /* when the first piece came, or these were last tried to be sent; s */
} mpidata_bundle;

/* Numbers of maps that a trainer may forget. */
typedef struct {
    int64_t *numbers, n, room;
} mpidata_forgets;

/* Maps by which fields were put in one step. */
typedef struct {
    struct { mpidata_map *map; int field; int64_t step; } *list;
    int64_t n, room;
} mpidata_put_maps;

typedef struct {
    mpidata_job *job;
    mpidata_staged_piece *pieces; /* n_pieces to be in flight, one to stage what is bundled, and those of the constants */
    int n_pieces;
    /* Number of the first piece of a second pool, for validation samples; 0: there is none. Where trainers die, they may wait
     * for these while their buffers are full, and what is under way of simulations before must not hold them up. */
    int second;
    mpidata_kept_constants constants;
    mpidata_flight flight;
    int filling;             /* piece of the sample that is being put, -1: none yet */
    mpidata_bundle *bundles; /* one per trainer; NULL where pieces are not small */
    char *met;               /* by trainer: whether something was sent to it */
    int tag;                 /* of the present simulation, and of what is bundled */
    double committed;        /* when the last sample was; s */
    int hurried;             /* it came right after the one before */
    mpidata_put_maps put_maps; /* of steps on which the group has not agreed (map_sending.c) */
    mpidata_forgets *forgets; /* by trainer and stream; NULL: there are none yet (map_sending.c) */
    mpidata_lent lent;
    mpidata_arena arena;     /* of what is sent */
    mpidata_copy_choice copies; /* of what is sent as it is copied */
    double waited;           /* for room on the trainers, since whoever reads it has set it back; s */
    int64_t by_try;          /* which try of the present simulation this is, from 1 */
    int (*meanwhile)(void *); /* of a carrier: called while this rank waits, with ... */
    void *of;                 /* ... this; NULL: there is nothing else to do */
} mpidata_sender;

/* Of which pool the pieces of the present simulation are. */
static inline int mpidata_sender_pool(const mpidata_sender *sender) {
    return sender->second && sender->tag == MPIDATA_TAG_VALIDATION;
}

/* The number of the constants' piece, by pool. */
static inline int mpidata_kept_constants_piece(const mpidata_sender *sender) {
    return sender->n_pieces + 1 + mpidata_sender_pool(sender);
}

/* In which a field is staged. */
static inline mpidata_staged_piece *mpidata_sender_piece(const mpidata_sender *sender, const mpidata_field *field) {
    return &sender->pieces[field->per_simulation ? mpidata_kept_constants_piece(sender) : sender->filling];
}

/* Its blocks need their maps no more. */
void mpidata_sender_release_maps(mpidata_staged_piece *piece);

int mpidata_sender_open(mpidata_sender *sender, mpidata_job *job);
void mpidata_sender_close(mpidata_sender *sender);

/* Stage one block, converting where its dtype is not the declared one. lend: send it from put->values without a copy, where
 * no conversion is needed. Blocks while every piece is in flight. Of a constant: after mpidata_kept_constants_begin. */
int mpidata_sender_stage(mpidata_sender *sender, const mpidata_block *block, const mpidata_put_arguments *put, int lend);

/* Send, or bundle, what has been staged since the last commit; nothing, where nothing was. Blocks only while a full bundle
 * finds every message in flight, and at most 0.1 s for the first message to each trainer. */
int mpidata_sender_commit(mpidata_sender *sender, int64_t simulation, int64_t step, double time, int validation,
                          const double *parameters);

/* Forget what has been staged since the last commit, and the constants. */
void mpidata_sender_drop(mpidata_sender *sender);

/* Let MPI move data; complete what can be completed. */
int mpidata_sender_progress(mpidata_sender *sender);

/* The same while this rank waits, listen to the scheduler, and do what else there is. Matches mpidata_wait_request's callback. */
int mpidata_sender_wait(void *sender);

/* Send all bundles. Blocks while every message is in flight. */
int mpidata_sender_flush(mpidata_sender *sender);

/* Send a map; its message holds it. */
int mpidata_sender_send_map(mpidata_sender *sender, int trainer, int validation, mpidata_map *map);

/* Send the bundle to one trainer, as mpidata_sender_flush. */
int mpidata_sender_flush_to(mpidata_sender *sender, int trainer);

/* Wait until all, or all with lent arrays, have been taken. */
int mpidata_sender_drain(mpidata_sender *sender, int lent_only);

/* Wait until this array is lent no more. */
int mpidata_sender_wait_for(mpidata_sender *sender, const void *values);

/* For kept_constants.c: write the header of a piece, with what travels along; returns its bytes in *bytes. */
int mpidata_sender_write(mpidata_sender *sender, int number, mpidata_piece *head, const double *parameters, size_t *bytes);

/* Send a piece that was written. */
int mpidata_sender_send(mpidata_sender *sender, int number, size_t bytes, int trainer);

/* Is this array lent to a message that is under way? */
int mpidata_sender_lends(const mpidata_sender *sender, const void *values);

#endif
