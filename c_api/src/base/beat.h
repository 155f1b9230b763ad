/* Signs of life for mpidata-rank, this program's parent, through the page of pulse.h; no effect without a page. */
#ifndef MPIDATA_BEAT_H
#define MPIDATA_BEAT_H

#include "base/pulse.h"

/* This program is alive. Cheap enough for every call. */
void mpidata_beat(void);

/* Publish what this loader is reading, or what ends this solver, truncated; "": nothing. Also a sign of life. */
void mpidata_beat_at(const char *what);

/* Publish how many batches this trainer has drawn. */
void mpidata_tell_batches(int64_t batches);

/* Set MPIDATA_PULSE_ flags. */
void mpidata_tell(uint32_t flags);

/* Clear them. */
void mpidata_withdraw(uint32_t flags);

/* The page itself; NULL if there is none. */
mpidata_pulse *mpidata_pulse_page(void);

#endif
