/* When a checkpoint is taken: from the order to the batch, and the answer. trainer/snapshot.h takes it. */
#ifndef MPIDATA_CHECKPOINT_H
#define MPIDATA_CHECKPOINT_H

#include "stream/state.h"

/* The scheduler orders one; the trainers have agreed on its batch; the next draw is the
 * place for it; tell the scheduler where none can be taken any more, and how one has ended. */
void mpidata_checkpoint_want_locked(mpidata_trainer *trainer, int64_t number);
void mpidata_checkpoint_agree_locked(mpidata_trainer *trainer, int64_t number, int64_t batch);
int mpidata_checkpoint_is_due_locked(mpidata_trainer *trainer);
int mpidata_checkpoint_give_up_locked(mpidata_trainer *trainer);
int mpidata_checkpoint_answer_locked(mpidata_trainer *trainer, int failed, int64_t bytes, const char *text);

#endif
