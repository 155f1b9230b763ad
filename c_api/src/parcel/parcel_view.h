/* A parcel as Python sees it. Not installed. */
#ifndef MPIDATA_PARCEL_VIEW_H
#define MPIDATA_PARCEL_VIEW_H

#include "parcel/parcel.h"
#include "python/structures.h"

mpidata_taken mpidata_taken_of(mpidata_parcel *parcel);

/* Copy one to the caller's memory: the offsets of its parts there and their sizes, int64, n_parts each, then the parts, each
 * aligned to 64 bytes. *bytes: up to the end of the first part. Returns 0, and copies nothing, if there is no room. */
int mpidata_parcel_copy(const mpidata_parcel *parcel, char *memory, int64_t room, int64_t *bytes);

/* Give its memory back. Any thread, also after this process has left the job. */
void mpidata_parcel_release(mpidata_parcel *parcel);

#endif
