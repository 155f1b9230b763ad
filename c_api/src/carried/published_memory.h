/* Published arrays in a carried program: memory that the carrier has filled and sealed, mapped here at one address. */
#ifndef MPIDATA_CARRIED_PUBLISHED_MEMORY_H
#define MPIDATA_CARRIED_PUBLISHED_MEMORY_H

#include "contents/contents.h"

typedef struct {
    mpidata_contents *contents; /* NULL: nothing has been published */
    size_t bytes;
} mpidata_published_memory;

/* Take over the contents of this descriptor; returns MPIDATA_ERR_JOB if they are not published arrays. */
int mpidata_published_memory_take(mpidata_published_memory *published, int memory, uint64_t bytes);

#endif
