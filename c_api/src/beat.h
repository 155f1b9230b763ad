/* Signs of life for mpidata-rank, this program's parent, through the page of pulse.h; nothing where there is none. */
#ifndef MPIDATA_BEAT_H
#define MPIDATA_BEAT_H

#include "pulse.h"

/* This program is alive. Cheap enough for every call. */
void mpidata_beat(void);

/* Tell a MPIDATA_PULSE_ flag. */
void mpidata_tell(uint32_t flag);

#endif
