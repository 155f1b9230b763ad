/* What goes over the wire. All ranks of a job run one build on one architecture, so structures travel as they are. Sizes
 * and contents of what arrives are checked before they are believed.
 *
 * solver -> trainer     pieces: a piece is one rank's blocks of one sample, with a header (mpidata_piece, parameters, one
 *                       mpidata_block each). Small blocks travel along, as payload behind the header; each other one is
 *                       a message that follows, in order. Pieces of which all travels may share a message.
 * solver, trainer -> scheduler   mpidata_event, its text cut to length
 * scheduler -> solver   mpidata_task with the parameters
 * scheduler -> trainer  mpidata_order */
#ifndef MPIDATA_WIRE_H
#define MPIDATA_WIRE_H

#include "wire/plan.h"
#include "scheduler/scheduler.h"

enum {
    MPIDATA_TAG_SAMPLE = 1,     /* pieces of training samples: left unmatched while the buffer is full */
    MPIDATA_TAG_VALIDATION = 2, /* pieces of validation samples: never held up */
    MPIDATA_TAG_EVENT = 3,
    MPIDATA_TAG_TASK = 4,
    MPIDATA_TAG_ORDER = 5,
    MPIDATA_TAG_STOP = 6 /* scheduler -> rank 0 of a group, an int32: MPIDATA_STOP_LEAVE; or -> each rank: _LOST */
};

enum { MPIDATA_STOP_LEAVE = 1, MPIDATA_STOP_LOST = 2 };

#define MPIDATA_PIECE_MAGIC 0x3344504Du
#define MPIDATA_PIECE_SMALL 32768  /* bytes of a piece's blocks up to which all travel along */
#define MPIDATA_BLOCK_SMALL 16384  /* of a larger piece: bytes of a block that travels along ... */
#define MPIDATA_ALONG_MAX 131072   /* ... while the payload is no longer than this */
#define MPIDATA_BLOCK_ANYWHERE 1024 /* bytes from which on a block begins on a boundary in the payload */
#define MPIDATA_BUNDLE_MAX 262144  /* bytes of pieces that share a message */
#define MPIDATA_BLOCKS_MAX 4096    /* blocks of one piece */
#define MPIDATA_STEPS_MAX ((int64_t)1 << 36) /* of a simulation: more than a job has time for, and safe to calculate with */

typedef struct {
    uint32_t magic;
    int32_t n_blocks;
    int64_t simulation;
    int64_t step;
    double time;
    int64_t payload_bytes; /* behind the header, padding included */
    int64_t turn;          /* which of its group's simulations this is, from 1 */
} mpidata_piece;

typedef struct {
    int32_t field;
    int32_t ndim;
    int64_t start[MPIDATA_MAX_NDIM];
    int64_t shape[MPIDATA_MAX_NDIM];
} mpidata_block;

enum { MPIDATA_TASK_RUN = 1, MPIDATA_TASK_NO_MORE = 2 };

typedef struct {
    int32_t kind;
    int32_t validation;
    int64_t simulation;
    double parameters[]; /* n_parameters */
} mpidata_task;

enum {
    MPIDATA_ORDER_EXPECT = 1, /* simulation has this many steps, says this try */
    MPIDATA_ORDER_END_OF_STREAM,
    MPIDATA_ORDER_STOP,
    MPIDATA_ORDER_RELIEVE, /* take `steps` samples over capacity */
    MPIDATA_ORDER_ALL_GONE,
    MPIDATA_ORDER_CHECKPOINT, /* number `steps`, greater than all before */
    MPIDATA_ORDER_VALIDATION, /* every validation sample that will come is there */
    MPIDATA_ORDER_JOIN, /* join the spawned group `simulation` */
    MPIDATA_ORDER_LOST, /* group `simulation` is lost: drop what it has not finished, and what may still come of it */
    MPIDATA_ORDER_GONE  /* group `simulation` has left; its communicator can be freed */
};

typedef struct {
    int32_t kind;
    int32_t try; /* EXPECT: which try of the simulation had these steps */
    int64_t simulation; /* or group */
    int64_t steps;
} mpidata_order;

int64_t mpidata_block_elements(const mpidata_block *block);

/* A header, and each large block's payload behind it, begins on a boundary of 64 bytes, as memory for samples does: some
 * processors copy at a twentieth of their speed between addresses that differ by less than that, modulo 4096. */
enum { MPIDATA_BOUNDARY = 64 };

/* Rounded up to the boundary. */
static inline size_t mpidata_padded(size_t bytes) {
    return (bytes + MPIDATA_BOUNDARY - 1) / MPIDATA_BOUNDARY * MPIDATA_BOUNDARY;
}

/* Bytes of the values of one block, and of several. The fields have been checked. */
size_t mpidata_block_bytes(const mpidata_plan *plan, const mpidata_block *block);
size_t mpidata_blocks_bytes(const mpidata_plan *plan, const mpidata_block *blocks, int n);

/* A walk over the blocks of a piece, in their order, finds which travel along and where in its payload. It begins as
 * {.in_all = bytes of all blocks}. */
typedef struct {
    size_t in_all;
    size_t place; /* where the last block that travels along begins */
    size_t end;   /* of the payload so far */
} mpidata_walk;

/* On to the next block, of so many bytes; returns whether it travels along. A message costs more than the copies of a
 * small block. */
static inline int mpidata_walk_on(mpidata_walk *walk, size_t bytes) {
    size_t place = bytes < MPIDATA_BLOCK_ANYWHERE ? walk->end : mpidata_padded(walk->end);
    if (walk->in_all > MPIDATA_PIECE_SMALL && (bytes > MPIDATA_BLOCK_SMALL || place + bytes > MPIDATA_ALONG_MAX)) return 0;
    walk->place = place;
    walk->end = place + bytes;
    return 1;
}

/* Bytes of a header. */
size_t mpidata_piece_header_bytes(int n_parameters, int n_blocks);

/* Bytes of a piece within a message: header, and payload behind it. */
size_t mpidata_piece_bytes(int n_parameters, int n_blocks, int64_t payload_bytes);

/* Check a block against its field; the sentence has no place in it, callers add it. */
int mpidata_block_check(const mpidata_plan *plan, const mpidata_block *block);

/* Check the first piece of a message that has `bytes` bytes left: the pointers are into `message`, which is 8-byte
 * aligned. The next piece begins mpidata_piece_bytes further on. */
int mpidata_piece_check(const mpidata_plan *plan, const void *message, size_t bytes, const mpidata_piece **piece,
                        const double **parameters, const mpidata_block **blocks, const char **payload);

/* Check what the scheduler sent, `bytes` of it. */
int mpidata_order_check(const mpidata_plan *plan, const mpidata_order *order, int bytes);
int mpidata_task_check(const mpidata_plan *plan, const mpidata_task *task);

/* Bytes of an event to send: without the unused end of its text. */
size_t mpidata_event_bytes(const mpidata_event *event);

#endif
