/* The constants of the samples of a batch: held for Python until it takes them, or the next batch is drawn. */
#ifndef MPIDATA_DRAWN_H
#define MPIDATA_DRAWN_H

#include "stream/state.h"

/* Forget those of the previous batch. */
void mpidata_drawn_with_nothing_locked(mpidata_trainer *trainer);

/* A step of the current batch has these. */
int mpidata_drawn_with_locked(mpidata_trainer *trainer, mpidata_try_constants *constants);

#endif
