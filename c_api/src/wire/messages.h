/* What passes between the scheduler and the others, beside the pieces of samples (wire.h): events to it, tasks to the
 * groups, orders to the trainers. An event and an order have a kind, and by kind one struct of what it says. */
#ifndef MPIDATA_MESSAGES_H
#define MPIDATA_MESSAGES_H

#include "wire/failed.h"
#include "wire/plan.h"
#include "wire/statistics.h"

enum {
    MPIDATA_TAG_SAMPLE = 1,     /* pieces of training samples: left unmatched while the buffer is full */
    MPIDATA_TAG_VALIDATION = 2, /* pieces of validation samples: never held up */
    MPIDATA_TAG_EVENT = 3,
    MPIDATA_TAG_TASK = 4,
    MPIDATA_TAG_ORDER = 5,
    MPIDATA_TAG_STOP = 6, /* scheduler -> rank 0 of a group, or loader, an int32: MPIDATA_STOP_LEAVE; or -> each rank: the others;
                             or -> rank 0 of a group, an mpidata_stop: MPIDATA_STOP_CANCEL */
    MPIDATA_TAG_REQUEST = 7, /* parcels of a trainer to a loader (parcel.h), or of the scheduler to the learner ... */
    MPIDATA_TAG_PARCEL = 8,  /* ... and the answers to them: none is held up, as each was asked for */
    MPIDATA_TAG_HANDED = 9,  /* samples of a trainer that draws nothing, to one that draws, among trainers alone */
    MPIDATA_TAG_TRAINERS = 10, /* scheduler -> each rank of what was spawned, once: the ranks of the trainers, an int each */
    MPIDATA_TAG_ASK = 12, /* rank 0 of a group, inference rank or scheduler -> trainer that publishes, mpidata_ask: what is newer? ... */
    MPIDATA_TAG_PUBLISHED = 13, /* ... and its answer, a parcel (parcel.h) with the contents (contents.h) as its one part */
    MPIDATA_TAG_QUESTION = 14, /* parcels of a solver rank to an inference rank, or by a trainer (receive/answering/relay.h) ... */
    MPIDATA_TAG_ANSWER = 15    /* ... and its answers: none is held up */
};

/* Leave; the group is given up; this trainer (added to it) has died, and the others go on. */
enum { MPIDATA_STOP_OVER = 0, MPIDATA_STOP_LEAVE = 1, MPIDATA_STOP_LOST = 2, MPIDATA_STOP_TRAINER_LOST = 3, MPIDATA_STOP_CANCEL = -1 };

/* One message, not a tag of its own, for which each look of a solver would cost another call of MPI. */
typedef struct {
    int32_t what; /* MPIDATA_STOP_...; of the others only this is sent */
    int32_t unused;
    int64_t simulation, by_try; /* what is cancelled: the group may run another one by now */
} mpidata_stop;

/* Words of the same tag, below all of these: an inference rank answers from now on, or is lost. */
static inline int32_t mpidata_answerer_word(int number, int lost) { return MPIDATA_STOP_CANCEL - 1 - 2 * number - lost; }
static inline int mpidata_answerer_number(int32_t word) { return (MPIDATA_STOP_CANCEL - 1 - word) / 2; }
static inline int mpidata_answerer_is_lost(int32_t word) { return (MPIDATA_STOP_CANCEL - 1 - word) % 2; }

/* -- solver, loader, trainer -> scheduler -------------------------------------------------------------------------- */

enum {
    MPIDATA_EVENT_NEXT = 1,          /* group asks for a simulation; closed; text: why that has failed; loader: for requests; so an inference rank, or learner */
    MPIDATA_EVENT_FINALIZED,         /* group, loader, inference rank or learner has left; closed; text likewise */
    MPIDATA_EVENT_HELD,              /* trainer holds every step it was to expect of a simulation: held */
    MPIDATA_EVENT_STATUS,            /* trainer's figures: status */
    MPIDATA_EVENT_REPORT,            /* trainer reports values: report; in place of text: them, see mpidata_reports_add */
    MPIDATA_EVENT_STOP,              /* trainer ended before the stream, or failed: stop; text: why */
    MPIDATA_EVENT_GOODBYE,           /* trainer has closed its stream after drawing everything, or after a stop */
    MPIDATA_EVENT_ERROR,             /* a rank reports an error that ends the job: text, the whole sentence */
    MPIDATA_EVENT_CHECKPOINT_WANTED, /* trainer's script asks for one: wanted */
    MPIDATA_EVENT_CHECKPOINT_WRITTEN, /* trainer has written its part of one: written; text: SHA-256, or why it failed */
    MPIDATA_EVENT_DIED,              /* a rank has died, as MPI says: died */
    MPIDATA_EVENT_RECORD_STOPPED,    /* trainer records no more: text, the whole sentence */
    MPIDATA_EVENT_LOSSES,            /* trainer's losses by simulation: losses; in place of text: mpidata_losses */
    MPIDATA_EVENT_READY,             /* trainer's answer to an order to prepare, or to join what was spawned: ready */
    MPIDATA_EVENT_LACKS,             /* trainer lacks steps of a simulation that one which has died had: lacks */
    MPIDATA_EVENT_ADOPTED,           /* trainer has its part of the steps of all that have died: adopted */
    MPIDATA_EVENT_CANCEL             /* trainer needs no more of simulations: cancel; in place of text: their ids, an int64 each */
};

/* What a process has used since it started. */
typedef struct {
    int64_t memory_kb; /* at most at once: of main memory, what it shares included */
    int64_t cpu_us;
} mpidata_usage;

/* Names under which a trainer that takes a place reports that others are to leave it its share of a stream, and, later, behind
 * which checkpoint it takes part in all. */
#define MPIDATA_JOINS "loaded.joins"
#define MPIDATA_TRAINS "loaded.trains"

/* A trainer would join at once; not now, as its script makes communicators; has joined; could not, as another one has died. The
 * last three only where the trainers go on after a death. */
enum { MPIDATA_ANSWER_READY = 1, MPIDATA_ANSWER_BUSY, MPIDATA_ANSWER_JOINED, MPIDATA_ANSWER_FAILED };

/* How the writing of a checkpoint has failed. */
enum { MPIDATA_WRITE_FAILED = 1, MPIDATA_LOOP_OVER = 2 };

typedef struct {
    int32_t kind;
    int32_t role;  /* MPIDATA_ROLE_... of the sender. These three are taken from the envelope */
    int32_t index; /* group, loader, trainer, inference rank or learner */
    int32_t rank;  /* in the job's world, or in its link with a spawned group or loader */
    union {
        struct {
            int64_t simulation; /* that the group closes; -1: none */
            int64_t steps;      /* that it has had */
            int64_t next_us;    /* rank 0 of the group waited for it, ... */
            int64_t start_us;   /* ... computed until its first step was over, ... */
            int64_t room_us;    /* ... and waited for room in the buffers, ... */
            int64_t total_us;   /* ... of these microseconds since the one before was closed */
            mpidata_usage usage; /* of rank 0 of the group */
            int32_t failed;     /* MPIDATA_GIVEN_UP, _TRY_FAILED or 0 */
        } closed;
        struct {
            int64_t simulation;
            int64_t by_try; /* the one that had told the number of steps */
        } held;
        struct {
            mpidata_statistics statistics;
            int32_t starved; /* a draw waits for samples */
            int32_t full;    /* the buffer has no room */
            int32_t ended;   /* the script knows that the stream is over */
            int32_t all_drawn; /* and has drawn all that there was: no stop has cut it short */
            int64_t waited_us; /* the training loop has waited for batches, since the start */
            int64_t asks_us;   /* it waits for one now; 0: it does not */
            int32_t idle;      /* it has a stream of batches, and has never asked for one */
            mpidata_usage usage;
        } status;
        struct {
            int32_t bytes; /* of the values */
        } report;
        struct {
            int32_t failed; /* the script has */
        } stop;
        struct {
            int64_t batch; /* the script is at */
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
            int32_t changes; /* so many */
        } adopted;
        struct {
            int32_t count; /* of simulations, from 1 to MPIDATA_CANCEL_MAX */
        } cancel;
    };
    char text[2048]; /* UTF-8, ends with 0; sent up to there */
} mpidata_event;

/* What a trainer has been told of the losses of one simulation's samples since it last said so. */
typedef struct {
    int64_t simulation;
    int64_t count;      /* of finite losses */
    int64_t not_finite; /* others: in none of the following */
    double sum, max, last;
    double excess; /* sum of max(0, (loss - its batch's mean) / its batch's standard deviation) */
    double difficulty; /* sum of the logarithm of the loss, less its mean over the batch */
} mpidata_losses;

enum { MPIDATA_LOSSES_MAX = 2047 / sizeof(mpidata_losses), MPIDATA_CANCEL_MAX = 2048 / sizeof(int64_t) - 1 };

/* Add a value to an event of reports; 0 where it has no room. Each is the number of the batch, int64, the value, double,
 * and the name, which ends with 0 and is cut off if it is too long. Nothing is aligned. */
int mpidata_reports_add(mpidata_event *event, const char *name, int64_t batch, double value);

/* Bytes of an event to send: without the unused end of its text, or of what is there in place of one. */
size_t mpidata_event_bytes(const mpidata_event *event);

/* Whether a rank of this role may have sent these bytes. Its text is ended. */
int mpidata_event_fits(const mpidata_plan *plan, mpidata_event *event, int bytes, int role);

/* -- scheduler -> solver -------------------------------------------------------------------------------------------- */

enum { MPIDATA_TASK_RUN = 1, MPIDATA_TASK_NO_MORE = 2 };

typedef struct {
    int32_t kind;
    int32_t validation;
    int64_t simulation;
    int64_t by_try; /* which try of the simulation it is, from 1 */
    double parameters[]; /* n_parameters; in an elastic job the changes of who trains come next: how many, int32, and the code of each */
} mpidata_task;

/* Bytes of a task, and where the changes are in it. */
size_t mpidata_task_bytes(const mpidata_plan *plan);
int32_t *mpidata_task_changes(const mpidata_plan *plan, mpidata_task *task);

/* Whether a task is as long as it must be, so that it may be read. */
int mpidata_task_fits(const mpidata_plan *plan, const mpidata_task *task, int bytes);
int mpidata_task_check(const mpidata_plan *plan, const mpidata_task *task);

/* -- solver, inference rank, scheduler -> trainer that publishes ---------------------------------------------------- */

typedef struct {
    int64_t version; /* that it has; 0: none */
    int32_t waits;   /* 0: answer at once; 1: when there is a newer one */
    int32_t unused;
} mpidata_ask;

/* Kind of the answer's parcel, whose number is the version: no other one than the asker has, or a newer one. */
enum { MPIDATA_PUBLISHED_SAME = 0, MPIDATA_PUBLISHED_NEWER = 1 };

int mpidata_ask_fits(const mpidata_ask *ask, int bytes);

/* -- scheduler -> trainer ------------------------------------------------------------------------------------------- */

enum {
    MPIDATA_ORDER_EXPECT = 1, /* a simulation has so many steps: expect */
    MPIDATA_ORDER_END_OF_STREAM,
    MPIDATA_ORDER_STOP,
    MPIDATA_ORDER_RELIEVE, /* take samples over capacity: relieve */
    MPIDATA_ORDER_ALL_GONE,
    MPIDATA_ORDER_CHECKPOINT, /* write one: checkpoint */
    MPIDATA_ORDER_VALIDATION, /* every validation sample that will come is there */
    MPIDATA_ORDER_JOIN,       /* join a spawned group or loader: of_group */
    MPIDATA_ORDER_LOST,       /* one is lost: drop what it has not finished, and what may still come of it: of_group */
    MPIDATA_ORDER_GONE,       /* one has left; its communicator, if it was spawned, can be freed: of_group */
    MPIDATA_ORDER_SERVES,     /* a loader takes requests from now on: of_group */
    MPIDATA_ORDER_RETIRES,    /* a loader is to be sent no more requests, and to be told so: of_group */
    MPIDATA_ORDER_RESTS,      /* one that retired has answered all that it had; it may serve again: of_group */
    MPIDATA_ORDER_PREPARE,    /* say whether the order to join one would be obeyed at once: of_group */
    MPIDATA_ORDER_TRAINERS,   /* so many are to train: trainers */
    MPIDATA_ORDER_TRAINER_LOST, /* another trainer has died, or trains no more, and the others go on: of_trainer */
    MPIDATA_ORDER_TRAINER_JOINED, /* a spare trains from now on: of_trainer */
    MPIDATA_ORDER_DISMISS,        /* do not join one for now, or drop it if it was joined: of_group */
    MPIDATA_ORDER_HANDS_OVER, /* a trainer draws nothing, and hands its samples over: of_trainer */
    MPIDATA_ORDER_CANCEL      /* drop what still comes of a simulation, though the buffer is full: cancel */
};

typedef struct {
    int32_t kind;
    union {
        struct {
            int64_t simulation;
            int64_t steps;
            int32_t by_try; /* which try of the simulation had these steps */
        } expect;
        struct {
            int64_t samples;
        } relieve;
        struct {
            int64_t number; /* greater than all before */
        } checkpoint;
        struct {
            int64_t number; /* of this order: greater than all before */
            int64_t count;  /* 0: none is needed any more, and who waits leaves */
        } trainers;
        struct {
            int32_t trainer;
        } of_trainer;
        struct {
            int64_t simulation;
            int32_t group; /* that runs it; -1: none does */
            int32_t closed; /* it runs it no more: what comes of it from now on waits for room again */
        } cancel;
        struct {
            int32_t group; /* or loader */
            int32_t role;  /* MPIDATA_ROLE_SOLVER, _LOADER, _INFERENCE or _LEARNER */
            int32_t place, members; /* to join it: which of so many trainers it is in the new hub; 0, 0: the hub is as it was */
            char at[MPIDATA_ITEM_MAX]; /* what a loader that is lost worked on: UTF-8, ends with 0; "": not known */
        } of_group;
    };
} mpidata_order;

/* Check what the scheduler sent, `bytes` of it. */
int mpidata_order_check(const mpidata_plan *plan, const mpidata_order *order, int bytes);

#endif
