/* Trainers of which only some draw, as where one of several draws for all of them and sends its batches to the others.
 *
 * A trainer that has never asked for a batch says nothing of the end of the stream. When the scheduler says that it gives,
 * it grants the others whatever they can draw, and its samples go to them (receive/giving/lanes.h). Where all trainers train
 * in step, this does not happen to one that is late: the others wait for it in a collective call then, not for a batch. If
 * it asks for a batch after all, it draws what comes from then on, and the others wait until it has had as many. */
#ifndef MPIDATA_GIVING_H
#define MPIDATA_GIVING_H

#include "stream/state.h"

void mpidata_giving_close(mpidata_trainer *trainer);

/* The scheduler has said that this trainer, or another one, gives. */
int mpidata_note_giver_locked(mpidata_trainer *trainer, int giver);

/* Does this trainer leave it to the others when the stream is over? */
int mpidata_is_idle_locked(const mpidata_trainer *trainer);

/* Does it lack the samples of a batch that is granted, as it has begun late? */
int mpidata_lags_locked(const mpidata_trainer *trainer);

/* Its samples have gone, or go, to the others, for which the stream goes on or ends without it. */
static inline int mpidata_gives(const mpidata_trainer *trainer) {
    return trainer->giving.phase == MPIDATA_GIVES || trainer->giving.phase == MPIDATA_GAVE;
}

#endif
