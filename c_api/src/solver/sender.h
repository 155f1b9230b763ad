/* Sending of the samples of a solver rank: few messages are in flight, so that an overloaded trainer costs bounded memory.
 *
 * A piece is staged while its fields are put, and sent when its sample is committed. If a rank's parts are small, a piece is
 * sent immediately only if nothing is in flight to its trainer; else it waits for the next ones, and they share a message (as
 * in J. Nagle's RFC 896). So does one that comes right after the previous one, because more will follow, until they have some
 * tens of kilobytes or are a fraction of a millisecond old: a fast solver sends few messages, a slow one does not
 * wait. */
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
    const void *lent; /* array of mpidata_iput, sent in place; NULL: staged */
    size_t offset;    /* of the staged payload */
    size_t bytes;
    mpidata_map *map; /* by which it is put, or NULL */
    int along;    /* with the header, not in a separate message ... */
    size_t place; /* ... its offset in the payload there */
} mpidata_staged_block;

typedef struct {
    char *header;
    size_t header_capacity;
    char *payload;
    size_t payload_capacity, payload_bytes;
    mpidata_staged_block *blocks;
    int n_blocks;
    int64_t blocks_capacity;
    mpidata_moments *moments; /* of the blocks, if there are statistics */
    int64_t n_moments, moments_capacity;
    int n_maps;    /* blocks that are put by one */
    int under_way; /* messages; 0: not in flight */
    int trainers[2], n_trainers; /* to whom it goes */
} mpidata_staged_piece;

/* The constants of the current simulation: a separate piece, kept and sent to each trainer before the first other piece. */
typedef struct {
    char *sent;          /* by trainer; NULL: the job has none */
    size_t header_bytes; /* 0: not written yet */
    int over;            /* the simulation has ended: the next use is for another one */
} mpidata_kept_constants;

/* Messages in flight. All are tested with one call, because each call of MPI that finds nothing may yield the core. */
typedef struct {
    MPI_Request *requests;
    struct { int piece, trainer; mpidata_map *map; } *of; /* the piece or map of each, and its receiver */
    int *done;
    MPI_Status *statuses;
    int n;
    int64_t allocated;
} mpidata_flight;

/* Small pieces that wait for their trainer's last message, or for more of them. */
typedef struct {
    char *memory;
    size_t capacity, bytes;
    int in_flight[2]; /* messages in flight to this trainer, by pool of their pieces */
    double since;  /* when the first piece came, or the last attempt to send these; s */
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
    mpidata_staged_piece *pieces; /* n_pieces to be in flight, one to stage bundled data, and those of the constants */
    int n_pieces;
    /* Number of the first piece of a second pool, for validation samples; 0: there is none. If trainers may die, they may wait
     * for these while their buffers are full, and earlier messages in flight must not block them. */
    int second;
    mpidata_kept_constants constants;
    mpidata_flight flight;
    int filling;             /* piece of the sample that is being put, -1: none yet */
    mpidata_bundle *bundles; /* one per trainer; NULL if pieces are not small */
    char *met;               /* by trainer: whether something was sent to it */
    int tag;                 /* of the current simulation, and of bundled pieces */
    double committed;        /* when the last sample was committed; s */
    int hurried;             /* it came right after the previous one */
    mpidata_put_maps put_maps; /* of steps on which the group has not agreed (map_sending.c) */
    mpidata_forgets *forgets; /* by trainer and stream; NULL: there are none yet (map_sending.c) */
    mpidata_lent lent;
    mpidata_arena arena;     /* of messages */
    mpidata_copy_choice copies; /* of values that are sent from the copy */
    double waited;           /* wait for room on the trainers, since the reader has reset it; s */
    int64_t by_try;          /* number of the try of the current simulation, from 1 */
    int (*meanwhile)(void *); /* of a carrier: called while this rank waits, with ... */
    void *of;                 /* ... this; NULL: there is nothing else to do */
} mpidata_sender;

/* The pool of the pieces of the current simulation. */
static inline int mpidata_sender_pool(const mpidata_sender *sender) {
    return sender->second && sender->tag == MPIDATA_TAG_VALIDATION;
}

/* The number of the constants' piece, by pool. */
static inline int mpidata_kept_constants_piece(const mpidata_sender *sender) {
    return sender->n_pieces + 1 + mpidata_sender_pool(sender);
}

/* The piece in which a field is staged. */
static inline mpidata_staged_piece *mpidata_sender_piece(const mpidata_sender *sender, const mpidata_field *field) {
    return &sender->pieces[field->per_simulation ? mpidata_kept_constants_piece(sender) : sender->filling];
}

/* Its blocks no longer need their maps. */
void mpidata_sender_release_maps(mpidata_staged_piece *piece);

int mpidata_sender_open(mpidata_sender *sender, mpidata_job *job);
void mpidata_sender_close(mpidata_sender *sender);

/* Stage one block, and convert it if its dtype is not the declared one. lend: send it from put->values without a copy, if no
 * conversion is needed. Blocks while every piece is in flight. For a constant: after mpidata_kept_constants_begin. */
int mpidata_sender_stage(mpidata_sender *sender, const mpidata_block *block, const mpidata_put_arguments *put, int lend);

/* Send, or bundle, the data staged since the last commit, if any. Blocks only while a full bundle finds every message in
 * flight, and at most 0.1 s for the first message to each trainer. */
int mpidata_sender_commit(mpidata_sender *sender, int64_t simulation, int64_t step, double time, int validation,
                          const double *parameters);

/* Forget the data staged since the last commit, and the constants. */
void mpidata_sender_drop(mpidata_sender *sender);

/* Let MPI progress; complete finished messages. */
int mpidata_sender_progress(mpidata_sender *sender);

/* The same while this rank waits; also listens to the scheduler, and calls `meanwhile`. For mpidata_wait_request. */
int mpidata_sender_wait(void *sender);

/* Send all bundles. Blocks while every message is in flight. */
int mpidata_sender_flush(mpidata_sender *sender);

/* Send a map; its message holds it. */
int mpidata_sender_send_map(mpidata_sender *sender, int trainer, int validation, mpidata_map *map);

/* Send the bundle to one trainer, as mpidata_sender_flush. */
int mpidata_sender_flush_to(mpidata_sender *sender, int trainer);

/* Wait until all, or all with lent arrays, have been taken. */
int mpidata_sender_drain(mpidata_sender *sender, int lent_only);

/* Wait until this array is no longer lent. */
int mpidata_sender_wait_for(mpidata_sender *sender, const void *values);

/* For kept_constants.c: write the header of a piece, with blocks that travel along; *bytes: its size. */
int mpidata_sender_write(mpidata_sender *sender, int number, mpidata_piece *head, const double *parameters, size_t *bytes);

/* Send a piece that was written. */
int mpidata_sender_send(mpidata_sender *sender, int number, size_t bytes, int trainer);

/* Whether this array is lent to a message in flight. */
int mpidata_sender_lends(const mpidata_sender *sender, const void *values);

#endif
