/* A parcel as Python sees it. Not installed. */
#ifndef MPIDATA_TAKEN_H
#define MPIDATA_TAKEN_H

#include "parcel/parcel.h"
#include "python/structures.h"

mpidata_taken mpidata_taken_of(mpidata_parcel *parcel);

/* Give its memory back. Any thread, also after this process has left the job. */
void mpidata_parcel_release(mpidata_parcel *parcel);

#endif
