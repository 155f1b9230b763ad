/* The journal of a trainer: in which order samples entered its buffer and batches were drawn from it. With the seed of the
 * job these say what each batch was, so a run that keeps to the journal of an earlier one hands out its batches again.
 *
 * A file of text in the run folder, a line for each entry:
 *   s SIMULATION STEP HASH  a sample has entered the buffer
 *   d COUNT                 a batch of so many samples was drawn
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
    MPIDATA_JOURNAL_CANCEL = 'c', /* which is no entry of its own */
    MPIDATA_JOURNAL_END = 'e',
    MPIDATA_JOURNAL_OVER = 'o'
};

typedef struct {
    int kind;
    int64_t simulation, step; /* of a sample */
    uint64_t hash;
    int64_t count; /* of a batch */
} mpidata_journal_entry;

/* A simulation that was cancelled in the run that is replayed. */
typedef struct {
    int64_t simulation;
    int64_t *steps, n, allocated; /* that had come, in order */
    int64_t left; /* of them, not in the buffer yet */
    int said;     /* the scheduler knows that this trainer has them all */
} mpidata_cancelled;

typedef struct {
    const mpidata_plan *plan;
    FILE *written;              /* of this run, or NULL */
    FILE *replayed;             /* of the run that is replayed, or NULL */
    mpidata_journal_entry next; /* in `replayed` */
    int64_t line;               /* of `next`, from 1 */
    int64_t draws;              /* before `next` */
    double since;               /* when `next` became so */
    int64_t *ends;              /* of `replayed`: behind the last step of each simulation; NULL: it was cut short */
    int *groups;                /* that sent the last sample of each simulation of `replayed` in this run; -1: none did */
    mpidata_cancelled *cancelled; /* of `replayed` */
    int64_t n_cancelled, cancelled_allocated, unsaid; /* unsaid: how many of them have not been `said` */
} mpidata_journal;

/* Begin the journal and open the one to be replayed, where the plan says so. */
int mpidata_journal_open(mpidata_journal *journal, const mpidata_plan *plan, int trainer);
void mpidata_journal_close(mpidata_journal *journal);

/* Whether a sample is behind all that the run to be replayed has of its simulation. */
int mpidata_journal_lacks(const mpidata_journal *journal, int64_t simulation, int64_t step);

/* Whether a sample of the replay is to be dropped, as its simulation was cancelled before it came. */
int mpidata_journal_drops(const mpidata_journal *journal, int64_t simulation, int64_t step);

/* A simulation of the replay that is to be cancelled, as all that had come of it is in the buffer; each once. -1: none now. */
int64_t mpidata_journal_next_cancelled(mpidata_journal *journal);

/* What has come so far survives this process. */
int mpidata_journal_flush(mpidata_journal *journal);

/* A sample enters the buffer. In a replay it is the next one; an error where its bits are others. */
int mpidata_journal_sample(mpidata_journal *journal, const mpidata_slots *slots, int64_t number);

/* The scheduler has cancelled a simulation. */
int mpidata_journal_cancel(mpidata_journal *journal, int64_t simulation);

/* A batch of `count`, MPIDATA_JOURNAL_END, or MPIDATA_JOURNAL_OVER. In a replay it is the next one; an error where it is a
 * batch of another size. */
int mpidata_journal_note(mpidata_journal *journal, int kind, int64_t count);

#endif
