/* Trainers of which only some draw, for example if one of several draws for all and sends its batches to the others.
 *
 * A trainer that has never requested a batch does not report the end of the stream. When the scheduler decides that it gives,
 * it grants the others all that they can draw, and its samples go to them (receive/giving/lanes.h). If all trainers train in
 * step, this does not happen to a late one: the others then wait for it in a collective call, not for a batch. If it does
 * request a batch later, it draws samples that come from then on, and the others wait until it has had as many batches. */
#ifndef MPIDATA_GIVING_H
#define MPIDATA_GIVING_H

#include "stream/state.h"

void mpidata_giving_close(mpidata_trainer *trainer);

/* The scheduler has reported that this trainer, or another one, gives. */
int mpidata_note_giver_locked(mpidata_trainer *trainer, int giver);

/* Whether this trainer leaves the end of the stream to the others. */
int mpidata_is_idle_locked(const mpidata_trainer *trainer);

/* Whether it lacks the samples of a granted batch, because it has started late. */
int mpidata_lags_locked(const mpidata_trainer *trainer);

/* Whether its samples have gone, or go, to the others, whose stream continues or ends without it. */
static inline int mpidata_gives(const mpidata_trainer *trainer) {
    return trainer->giving.phase == MPIDATA_GIVES || trainer->giving.phase == MPIDATA_GAVE;
}

#endif
