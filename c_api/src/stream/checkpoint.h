/* When a checkpoint is taken: from the order to the batch, and the answer. trainer/snapshot.h takes it. */
#ifndef MPIDATA_CHECKPOINT_H
#define MPIDATA_CHECKPOINT_H

#include "stream/state.h"

/* The reports of all trainers in an agreement: the greatest of each number. */
typedef struct {
    int64_t ordered;    /* the newest checkpoint that any has learned of */
    int64_t agreed, at; /* the newest that any knows to be agreed on, and its batch */
    int64_t drawn;      /* by the furthest */
    int takes;          /* one must still take the agreed one */
    int unaware;        /* one still draws, because it has not stopped for a checkpoint */
    int64_t granted;
    int over;           /* nothing more is granted or agreed on */
} mpidata_said;

/* The decision for all of them. */
typedef struct {
    int64_t number, batch; /* the newest checkpoint that is agreed on */
    int again;             /* a newer one is ordered: all ask once more */
} mpidata_word;

/* Each trainer derives it only from the reports of all, so that all find the same, also those that do not know the outcome of
 * an agreement that a death broke. If any knows that one is agreed on, it holds for all. A newer one is taken at the batch of
 * the furthest, if all have stopped drawing for it, and none must still take another one. */
mpidata_word mpidata_checkpoint_decide(const mpidata_said *said);

/* Whether this trainer stops drawing, and asks for the batch of the newest one. */
int mpidata_checkpoint_asks_locked(const mpidata_trainer *trainer);

/* Apply the decision. A trainer that has just joined takes part only in checkpoints that were agreed on with it. */
void mpidata_checkpoint_follow_locked(mpidata_trainer *trainer, const mpidata_said *said);

/* The scheduler orders one; the trainers have agreed on its batch; the next draw is its place; report to the scheduler
 * that none can be taken any longer, and how one has ended. */
void mpidata_checkpoint_want_locked(mpidata_trainer *trainer, int64_t number);
void mpidata_checkpoint_agree_locked(mpidata_trainer *trainer, int64_t number, int64_t batch);
int mpidata_checkpoint_is_due_locked(mpidata_trainer *trainer);
int mpidata_checkpoint_give_up_locked(mpidata_trainer *trainer);
int mpidata_checkpoint_answer_locked(mpidata_trainer *trainer, int failed, int64_t bytes, const char *text);

#endif
