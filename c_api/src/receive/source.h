/* Where samples come from: the ranks of a communicator, and what is under way from each. */
#ifndef MPIDATA_SOURCE_H
#define MPIDATA_SOURCE_H

#include "containers/message_list.h"
#include "job/link.h"
#include "parcel/inbox.h"
#include "receive/assembly/assembly.h"

/* Sources of which pieces may be under way at once, with the same exception as for receives. */
enum { MPIDATA_PENDING_MAX = 32, MPIDATA_STREAMS = 2 };

/* A block that is to come in a message of its own. */
typedef struct {
    mpidata_block block;
    int part; /* of the sample, of a field that varies; -1: a block of another one */
} mpidata_expected_block;

/* One stream (training or validation samples) from one rank. */
typedef struct {
    int group, rank, rank_in_group, validation;
    const mpidata_link *link;
    int lost; /* its group is: what comes is dropped */
    int drained; /* its group runs a simulation that is cancelled: what comes is taken though the buffer is full */
    mpidata_assembly *assembly; /* of the announced piece whose block messages are still to come; NULL: drop them */
    mpidata_try_constants *constants; /* which this rank has sent last; NULL: none, or its group has left */
    mpidata_expected_block *blocks;
    int n_blocks, next;
    int64_t allocated;
    char *message; /* pieces under way, NULL: none */
    size_t bytes;
    MPI_Request request;
    double since; /* when it became pending; s */
    mpidata_message_list waiting; /* for the one before them */
    mpidata_kept_maps maps;       /* that have come in this stream */
} mpidata_source;

typedef struct {
    mpidata_link link;
    mpidata_source *sources; /* MPIDATA_STREAMS per rank */
    mpidata_inbox *inbox;    /* of parcels; NULL: none has been looked for */
    mpidata_inbox *questions, *answers; /* that are passed on; NULL likewise */
    int gone, lost; /* its one group has left, or is lost */
} mpidata_inlet;

#endif
