/* Signs of life for mpidata-rank, this program's parent, through the page of pulse.h; nothing where there is none. */
#ifndef MPIDATA_BEAT_H
#define MPIDATA_BEAT_H

#include "base/pulse.h"

/* This program is alive. Cheap enough for every call. */
void mpidata_beat(void);

/* Say what this loader works on, or what ends this solver, as far as there is room; "": nothing. A sign of life, too. */
void mpidata_beat_at(const char *what);

/* Say how many batches this trainer has drawn. */
void mpidata_tell_batches(int64_t batches);

/* Tell MPIDATA_PULSE_ flags. */
void mpidata_tell(uint32_t flags);

/* They hold no more. */
void mpidata_withdraw(uint32_t flags);

/* The page itself; NULL where there is none. */
mpidata_pulse *mpidata_pulse_page(void);

#endif
