/* When a checkpoint is taken: from the order to the batch, and the answer. trainer/snapshot.h takes it. */
#ifndef MPIDATA_CHECKPOINT_H
#define MPIDATA_CHECKPOINT_H

#include "stream/state.h"

/* What all trainers say in an agreement: of each number the greatest. */
typedef struct {
    int64_t ordered;    /* the newest checkpoint that one has heard of */
    int64_t agreed, at; /* the newest that one knows to be agreed on, and its batch */
    int64_t drawn;      /* by the furthest */
    int takes;          /* one has still to take what was agreed on */
    int unaware;        /* one draws on, as it has not stopped for a checkpoint */
    int64_t granted;
    int over;           /* nothing is granted or agreed on any more */
} mpidata_said;

/* What follows for all of them. */
typedef struct {
    int64_t number, batch; /* the newest checkpoint that is agreed on */
    int again;             /* a newer one is wanted: all ask once more */
} mpidata_word;

/* Each trainer finds it by what all have said alone, so that all find the same, also those that do not know the outcome of
 * an agreement that a death broke. What one knows to be agreed on holds for all. A newer one comes where the furthest is, if
 * all have stopped to draw for it, and none has still to take another one. */
mpidata_word mpidata_checkpoint_decide(const mpidata_said *said);

/* Does this trainer stop to draw, and ask where the newest is to be? */
int mpidata_checkpoint_asks_locked(const mpidata_trainer *trainer);

/* Go on by that. Who has just joined takes part in what was agreed on with it, and in nothing before. */
void mpidata_checkpoint_follow_locked(mpidata_trainer *trainer, const mpidata_said *said);

/* The scheduler orders one; the trainers have agreed on its batch; the next draw is the
 * place for it; tell the scheduler where none can be taken any more, and how one has ended. */
void mpidata_checkpoint_want_locked(mpidata_trainer *trainer, int64_t number);
void mpidata_checkpoint_agree_locked(mpidata_trainer *trainer, int64_t number, int64_t batch);
int mpidata_checkpoint_is_due_locked(mpidata_trainer *trainer);
int mpidata_checkpoint_give_up_locked(mpidata_trainer *trainer);
int mpidata_checkpoint_answer_locked(mpidata_trainer *trainer, int failed, int64_t bytes, const char *text);

#endif
