/* The journal of a trainer: in which order samples entered its buffer and batches were drawn from it. With the seed of the
 * job this determines each batch, so a run that follows the journal of an earlier one repeats its batches.
 *
 * A text file in the run folder, a line for each entry:
 *   s SIMULATION STEP HASH  a sample has entered the buffer
 *   d COUNT                 a batch of COUNT samples was drawn
 *   c SIMULATION            it is cancelled: no further sample of it comes
 *   e                       no more samples come
 *   o                       no more batches are drawn
 * A run that was cut short lacks the end. Not thread-safe. */
#ifndef MPIDATA_JOURNAL_H
#define MPIDATA_JOURNAL_H

#include <stdio.h>

#include "buffer/slots.h"

enum {
    MPIDATA_JOURNAL_STOPS = 0, /* the file has no more entries */
    MPIDATA_JOURNAL_SAMPLE = 's',
    MPIDATA_JOURNAL_DRAW = 'd',
    MPIDATA_JOURNAL_CANCEL = 'c', /* not an entry of its own */
    MPIDATA_JOURNAL_END = 'e',
    MPIDATA_JOURNAL_OVER = 'o'
};

typedef struct {
    int kind;
    int64_t simulation, step; /* of a sample */
    uint64_t hash;
    int64_t count; /* of a batch */
} mpidata_journal_entry;

/* A simulation that was cancelled in the replayed run. */
typedef struct {
    int64_t simulation;
    int64_t *steps, n, allocated; /* that had come, in order */
    int64_t left; /* number of them that are not in the buffer yet */
    int said;     /* whether the scheduler knows that this trainer has them all */
} mpidata_cancelled;

typedef struct {
    const mpidata_plan *plan;
    FILE *written;              /* of this run, or NULL */
    FILE *replayed;             /* of the replayed run, or NULL */
    mpidata_journal_entry next; /* in `replayed` */
    int64_t line;               /* of `next`, from 1 */
    int64_t draws;              /* before `next` */
    double since;               /* when `next` was read */
    int64_t *ends;              /* of `replayed`: number of steps of each simulation; NULL: it is incomplete */
    int *groups;                /* by simulation of `replayed`: the group that sent its last sample in this run; -1: none */
    mpidata_cancelled *cancelled; /* of `replayed` */
    int64_t n_cancelled, cancelled_allocated, unsaid; /* unsaid: number that are not `said` */
} mpidata_journal;

/* Start the journal and open the one to replay, as the plan says. */
int mpidata_journal_open(mpidata_journal *journal, const mpidata_plan *plan, int trainer);
void mpidata_journal_close(mpidata_journal *journal);

/* Whether a sample is after all those that the replayed run has of its simulation. */
int mpidata_journal_lacks(const mpidata_journal *journal, int64_t simulation, int64_t step);

/* Whether to drop a sample of the replay, because its simulation was cancelled before the sample came. */
int mpidata_journal_drops(const mpidata_journal *journal, int64_t simulation, int64_t step);

/* A simulation of the replay to cancel now, because all its samples are in the buffer; each once. -1: none now. */
int64_t mpidata_journal_next_cancelled(mpidata_journal *journal);

/* Flush, so that the entries so far survive this process. */
int mpidata_journal_flush(mpidata_journal *journal);

/* A sample enters the buffer. In a replay it is the next one; an error if its bits differ. */
int mpidata_journal_sample(mpidata_journal *journal, const mpidata_slots *slots, int64_t number);

/* The scheduler has cancelled a simulation. */
int mpidata_journal_cancel(mpidata_journal *journal, int64_t simulation);

/* A batch of `count`, MPIDATA_JOURNAL_END, or MPIDATA_JOURNAL_OVER. In a replay it is the next entry; an error if the batch has
 * another size. */
int mpidata_journal_note(mpidata_journal *journal, int kind, int64_t count);

#endif
