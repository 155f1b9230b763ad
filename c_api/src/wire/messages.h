/* Messages between the scheduler and the other ranks, besides the pieces of samples (wire.h): events to it, tasks to the
 * groups, orders to the trainers. An event or order has a kind, and for each kind a struct with its contents. */
#ifndef MPIDATA_MESSAGES_H
#define MPIDATA_MESSAGES_H

#include "wire/failed.h"
#include "wire/plan.h"
#include "wire/statistics.h"

enum {
    MPIDATA_TAG_SAMPLE = 1,     /* pieces of training samples: left unmatched while the buffer is full */
    MPIDATA_TAG_VALIDATION = 2, /* pieces of validation samples: never delayed */
    MPIDATA_TAG_EVENT = 3,
    MPIDATA_TAG_TASK = 4,
    MPIDATA_TAG_ORDER = 5,
    MPIDATA_TAG_STOP = 6, /* scheduler -> rank 0 of a group, or loader, an int32: MPIDATA_STOP_LEAVE; or -> each rank: the others;
                             or -> rank 0 of a group, an mpidata_stop: MPIDATA_STOP_CANCEL */
    MPIDATA_TAG_REQUEST = 7, /* parcels of a trainer to a loader (parcel.h), or of the scheduler to the learner ... */
    MPIDATA_TAG_PARCEL = 8,  /* ... and the answers to them: never delayed, as each was requested */
    MPIDATA_TAG_HANDED = 9,  /* samples of a trainer that draws nothing, to one that draws, only among trainers */
    MPIDATA_TAG_TRAINERS = 10, /* scheduler -> each spawned rank, once: the ranks of the trainers, an int each */
    MPIDATA_TAG_ASK = 12, /* rank 0 of a group, inference rank or scheduler -> trainer that publishes, mpidata_ask: newer arrays? ... */
    MPIDATA_TAG_PUBLISHED = 13, /* ... and its answer, a parcel (parcel.h) with the contents (contents.h) as its one part */
    MPIDATA_TAG_QUESTION = 14, /* parcels of a solver rank to an inference rank, or by a trainer (receive/answering/relay.h) ... */
    MPIDATA_TAG_ANSWER = 15    /* ... and its answers: never delayed */
};

/* OVER: the job is over. LEAVE: leave. LOST: the group is given up. TRAINER_LOST + number: it has died, the others continue. */
enum { MPIDATA_STOP_OVER = 0, MPIDATA_STOP_LEAVE = 1, MPIDATA_STOP_LOST = 2, MPIDATA_STOP_TRAINER_LOST = 3, MPIDATA_STOP_CANCEL = -1 };

/* One message, not a separate tag, for which each check of a solver would cost another call of MPI. */
typedef struct {
    int32_t what; /* MPIDATA_STOP_...; except for a cancel, only this is sent */
    int32_t unused;
    int64_t simulation, by_try; /* that is cancelled: the group may already run another one */
} mpidata_stop;

/* Values of the same tag, below all of these: an inference rank answers from now on, or is lost. */
static inline int32_t mpidata_answerer_word(int number, int lost) { return MPIDATA_STOP_CANCEL - 1 - 2 * number - lost; }
static inline int mpidata_answerer_number(int32_t word) { return (MPIDATA_STOP_CANCEL - 1 - word) / 2; }
static inline int mpidata_answerer_is_lost(int32_t word) { return (MPIDATA_STOP_CANCEL - 1 - word) % 2; }

/* -- solver, loader, trainer -> scheduler -------------------------------------------------------------------------- */

enum {
    MPIDATA_EVENT_NEXT = 1,          /* group requests a simulation; closed; text: why that failed; others: for requests */
    MPIDATA_EVENT_FINALIZED,         /* group, loader, inference rank or learner has left; closed; text likewise */
    MPIDATA_EVENT_HELD,              /* trainer holds every expected step of a simulation: held */
    MPIDATA_EVENT_STATUS,            /* trainer's figures: status */
    MPIDATA_EVENT_REPORT,            /* trainer reports values: report; instead of text: the values, see mpidata_reports_add */
    MPIDATA_EVENT_STOP,              /* trainer ended before the stream, or failed: stop; text: why */
    MPIDATA_EVENT_GOODBYE,           /* trainer has closed its stream after drawing everything, or after a stop */
    MPIDATA_EVENT_ERROR,             /* a rank reports an error that ends the job: text, the whole sentence */
    MPIDATA_EVENT_CHECKPOINT_WANTED, /* trainer's script asks for one: wanted */
    MPIDATA_EVENT_CHECKPOINT_WRITTEN, /* trainer has written its part of one: written; text: SHA-256, or why it failed */
    MPIDATA_EVENT_DIED,              /* a rank has died, according to MPI: died */
    MPIDATA_EVENT_RECORD_STOPPED,    /* trainer no longer records: text, the whole sentence */
    MPIDATA_EVENT_LOSSES,            /* trainer's losses by simulation: losses; instead of text: mpidata_losses */
    MPIDATA_EVENT_READY,             /* trainer's answer to an order to prepare, or to join spawned ranks: ready */
    MPIDATA_EVENT_LACKS,             /* trainer lacks steps of a simulation that a dead trainer had: lacks */
    MPIDATA_EVENT_ADOPTED,           /* trainer has its part of the steps of all dead trainers: adopted */
    MPIDATA_EVENT_CANCEL             /* trainer no longer needs simulations: cancel; instead of text: their ids, an int64 each */
};

/* What a process has used since it started. */
typedef struct {
    int64_t memory_kb; /* peak of main memory, including shared memory */
    int64_t cpu_us;
} mpidata_usage;

/* Names under which a trainer that takes a place reports that others must leave it its share of a stream, and, later, after
 * which checkpoint it takes part in all. */
#define MPIDATA_JOINS "loaded.joins"
#define MPIDATA_TRAINS "loaded.trains"

/* A trainer would join at once; not now, because its script makes communicators; has joined; could not, because another one has
 * died. The last three only if the trainers continue after a death. */
enum { MPIDATA_ANSWER_READY = 1, MPIDATA_ANSWER_BUSY, MPIDATA_ANSWER_JOINED, MPIDATA_ANSWER_FAILED };

/* How writing a checkpoint has failed. */
enum { MPIDATA_WRITE_FAILED = 1, MPIDATA_LOOP_OVER = 2 };

typedef struct {
    int32_t kind;
    int32_t role;  /* MPIDATA_ROLE_... of the sender. These three are taken from the envelope */
    int32_t index; /* group, loader, trainer, inference rank or learner */
    int32_t rank;  /* in the job's world, or in its link with a spawned group or loader */
    union {
        struct {
            int64_t simulation; /* that the group closes; -1: none */
            int64_t steps;      /* steps that it has made */
            int64_t next_us;    /* rank 0 of the group waited for it, ... */
            int64_t start_us;   /* ... computed until its first step was over, ... */
            int64_t room_us;    /* ... and waited for room in the buffers, ... */
            int64_t total_us;   /* ... of these microseconds since the one before was closed */
            mpidata_usage usage; /* of rank 0 of the group */
            int32_t failed;     /* MPIDATA_GIVEN_UP, _TRY_FAILED or 0 */
        } closed;
        struct {
            int64_t simulation;
            int64_t by_try; /* the try that reported the number of steps */
        } held;
        struct {
            mpidata_statistics statistics;
            int32_t starved; /* a draw waits for samples */
            int32_t full;    /* the buffer has no room */
            int32_t ended;   /* the script knows that the stream is over */
            int32_t all_drawn; /* and has drawn all samples: no stop has cut it short */
            int64_t waited_us; /* the training loop has waited for batches, since the start */
            int64_t asks_us;   /* how long it has been waiting for one now; 0: it is not */
            int32_t idle;      /* it has a stream of batches, but has never requested one */
            mpidata_usage usage;
        } status;
        struct {
            int32_t bytes; /* of the values */
        } report;
        struct {
            int32_t failed; /* the script has failed */
        } stop;
        struct {
            int64_t batch; /* current batch of the script */
        } wanted;
        struct {
            int64_t number;
            int64_t batch;
            int64_t bytes;
            int32_t failed; /* MPIDATA_WRITE_FAILED, _LOOP_OVER or 0 */
        } written;
        struct {
            int32_t rank_in_group; /* of a solver */
        } died;
        struct {
            int32_t count; /* of simulations, from 1 to MPIDATA_LOSSES_MAX */
        } losses;
        struct {
            int32_t role; /* of the order, as is the next */
            int32_t group;
            int32_t answer; /* MPIDATA_ANSWER_... */
        } ready;
        struct {
            int64_t simulation;
        } lacks;
        struct {
            int32_t changes; /* number of changes */
        } adopted;
        struct {
            int32_t count; /* of simulations, from 1 to MPIDATA_CANCEL_MAX */
        } cancel;
    };
    char text[2048]; /* UTF-8, ends with 0; sent up to there */
} mpidata_event;

/* The losses of one simulation's samples that were reported to a trainer since its last event. */
typedef struct {
    int64_t simulation;
    int64_t count;      /* of finite losses */
    int64_t not_finite; /* others, which are not in the following sums */
    double sum, max, last;
    double excess; /* sum of max(0, (loss - its batch's mean) / its batch's standard deviation) */
    double difficulty; /* sum of the logarithm of the loss, less its mean over the batch */
} mpidata_losses;

enum { MPIDATA_LOSSES_MAX = 2047 / sizeof(mpidata_losses), MPIDATA_CANCEL_MAX = 2048 / sizeof(int64_t) - 1 };

/* Add a value to an event of reports; returns 0 if there is no room. Each is the number of the batch, int64, the value, double,
 * and the name, which ends with 0 and is truncated if too long. Nothing is aligned. */
int mpidata_reports_add(mpidata_event *event, const char *name, int64_t batch, double value);

/* Bytes of an event to send: without the unused end of its text, or of the data there. */
size_t mpidata_event_bytes(const mpidata_event *event);

/* Whether a rank of this role may have sent these bytes. Terminates its text. */
int mpidata_event_fits(const mpidata_plan *plan, mpidata_event *event, int bytes, int role);

/* -- scheduler -> solver -------------------------------------------------------------------------------------------- */

enum { MPIDATA_TASK_RUN = 1, MPIDATA_TASK_NO_MORE = 2 };

typedef struct {
    int32_t kind;
    int32_t validation;
    int64_t simulation;
    int64_t by_try; /* number of the try of the simulation, from 1 */
    double parameters[]; /* n_parameters; in an elastic job followed by the changes of training trainers: count, int32, codes */
} mpidata_task;

/* Bytes of a task, and the offset of the changes in it. */
size_t mpidata_task_bytes(const mpidata_plan *plan);
int32_t *mpidata_task_changes(const mpidata_plan *plan, mpidata_task *task);

/* Whether a task has the required length, so that it may be read. */
int mpidata_task_fits(const mpidata_plan *plan, const mpidata_task *task, int bytes);
int mpidata_task_check(const mpidata_plan *plan, const mpidata_task *task);

/* -- solver, inference rank, scheduler -> trainer that publishes ---------------------------------------------------- */

typedef struct {
    int64_t version; /* that it has; 0: none */
    int32_t waits;   /* 0: answer at once; 1: when there is a newer one */
    int32_t unused;
} mpidata_ask;

/* Kind of the answer's parcel, whose number is the version: the asker's own one, or a newer one. */
enum { MPIDATA_PUBLISHED_SAME = 0, MPIDATA_PUBLISHED_NEWER = 1 };

int mpidata_ask_fits(const mpidata_ask *ask, int bytes);

/* -- scheduler -> trainer ------------------------------------------------------------------------------------------- */

enum {
    MPIDATA_ORDER_EXPECT = 1, /* number of steps of a simulation: expect */
    MPIDATA_ORDER_END_OF_STREAM,
    MPIDATA_ORDER_STOP,
    MPIDATA_ORDER_RELIEVE, /* take samples beyond the capacity: relieve */
    MPIDATA_ORDER_ALL_GONE,
    MPIDATA_ORDER_CHECKPOINT, /* write one: checkpoint */
    MPIDATA_ORDER_VALIDATION, /* all validation samples have come */
    MPIDATA_ORDER_JOIN,       /* join a spawned group or loader: of_group */
    MPIDATA_ORDER_LOST,       /* one is lost: drop its unfinished and later data: of_group */
    MPIDATA_ORDER_GONE,       /* one has left; its communicator, if it was spawned, can be freed: of_group */
    MPIDATA_ORDER_SERVES,     /* a loader takes requests from now on: of_group */
    MPIDATA_ORDER_RETIRES,    /* send a loader no more requests, and a farewell: of_group */
    MPIDATA_ORDER_RESTS,      /* a retired one has answered all its requests; it may serve again: of_group */
    MPIDATA_ORDER_PREPARE,    /* report whether the order to join one would be obeyed at once: of_group */
    MPIDATA_ORDER_TRAINERS,   /* number of trainers that must train: trainers */
    MPIDATA_ORDER_TRAINER_LOST, /* another trainer has died, or no longer trains, and the others continue: of_trainer */
    MPIDATA_ORDER_TRAINER_JOINED, /* a spare trains from now on: of_trainer */
    MPIDATA_ORDER_DISMISS,        /* do not join one for now, or drop it if it was joined: of_group */
    MPIDATA_ORDER_HANDS_OVER, /* a trainer draws nothing, and hands its samples over: of_trainer */
    MPIDATA_ORDER_CANCEL      /* drop later samples of a simulation, even if the buffer is full: cancel */
};

typedef struct {
    int32_t kind;
    union {
        struct {
            int64_t simulation;
            int64_t steps;
            int32_t by_try; /* the try of the simulation that had these steps */
        } expect;
        struct {
            int64_t samples;
        } relieve;
        struct {
            int64_t number; /* greater than all before */
        } checkpoint;
        struct {
            int64_t number; /* of this order: greater than all before */
            int64_t count;  /* 0: none is needed any longer, and those that wait leave */
        } trainers;
        struct {
            int32_t trainer;
        } of_trainer;
        struct {
            int64_t simulation;
            int32_t group; /* that runs it; -1: none does */
            int32_t closed; /* it no longer runs it: its later samples wait for room again */
        } cancel;
        struct {
            int32_t group; /* or loader */
            int32_t role;  /* MPIDATA_ROLE_SOLVER, _LOADER, _INFERENCE or _LEARNER */
            int32_t place, members; /* to join it: its place among the trainers of the new hub, and their number; 0, 0: old hub */
            char at[MPIDATA_ITEM_MAX]; /* what a lost loader was reading: UTF-8, ends with 0; "": unknown */
        } of_group;
    };
} mpidata_order;

/* Check an order of `bytes` bytes from the scheduler. */
int mpidata_order_check(const mpidata_plan *plan, const mpidata_order *order, int bytes);

#endif
