/* A parcel as Python sees it (mpidata/native/library.py). Not installed. */
#ifndef MPIDATA_TAKEN_H
#define MPIDATA_TAKEN_H

#include "parcel/parcel.h"

typedef struct {
    mpidata_parcel *parcel; /* NULL: it is news of a loader */
    int32_t peer;           /* the loader that sends it, or that the news is of; for a loader the trainer that asks */
    int32_t news;           /* MPIDATA_LOADER_... of parcel_queue.h */
    uint32_t dataset, kind, status, unused;
    uint64_t number;
    int64_t n_parts;
    const int64_t *offsets, *sizes; /* of its parts in memory, n_parts each */
    char *memory;
    int64_t bytes;
    char at[232]; /* of a lost loader: what it worked on */
} mpidata_taken;

mpidata_taken mpidata_taken_of(mpidata_parcel *parcel);

/* Give its memory back. Any thread, also after this process has left the job. */
void mpidata_parcel_release(mpidata_parcel *parcel);

#endif
