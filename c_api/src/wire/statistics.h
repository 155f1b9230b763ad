/* The counts of a trainer. A checkpoint has them in this order. */
#ifndef MPIDATA_STATISTICS_H
#define MPIDATA_STATISTICS_H

#include <stdint.h>

typedef struct {
    int64_t received;    /* distinct training samples received; a window of several steps is one */
    int64_t validation;  /* distinct validation samples received */
    int64_t duplicates;  /* steps dropped because they had been received before */
    int64_t drawn;       /* batches drawn */
    int64_t fill;        /* steps in the buffer */
    int64_t capacity;    /* of the buffer */
    int64_t bytes;       /* payload bytes received, validation included */
    int64_t windows;     /* samples in the buffer */
} mpidata_statistics;

#endif
