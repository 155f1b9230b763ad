/* Sources of samples: the ranks of a communicator, with the state of receives from each. */
#ifndef MPIDATA_SOURCE_H
#define MPIDATA_SOURCE_H

#include "containers/message_list.h"
#include "job/link.h"
#include "parcel/inbox.h"
#include "receive/assembly/assembly.h"

/* Limit of sources with pieces in flight, with the same exception as for receives. */
enum { MPIDATA_PENDING_MAX = 32, MPIDATA_STREAMS = 2 };

/* A block that comes in a separate message. */
typedef struct {
    mpidata_block block;
    int part; /* of the sample, for a field that varies; -1: a block of another field */
} mpidata_expected_block;

/* One stream (training or validation samples) from one rank. */
typedef struct {
    int group, rank, rank_in_group, validation;
    const mpidata_link *link;
    int lost; /* its group is lost: messages are dropped */
    int drained; /* its group runs a cancelled simulation: messages are taken even if the buffer is full */
    mpidata_assembly *assembly; /* of the announced piece whose block messages are pending; NULL: drop them */
    mpidata_try_constants *constants; /* that this rank has sent last; NULL: none, or its group has left */
    mpidata_expected_block *blocks;
    int n_blocks, next;
    int64_t allocated;
    char *message; /* pieces in flight, NULL: none */
    size_t bytes;
    MPI_Request request;
    double since; /* when it became pending; s */
    mpidata_message_list waiting; /* messages that wait for the one before them */
    mpidata_kept_maps maps;       /* received in this stream */
} mpidata_source;

typedef struct {
    mpidata_link link;
    mpidata_source *sources; /* MPIDATA_STREAMS per rank */
    mpidata_inbox *inbox;    /* of parcels; NULL: not opened yet */
    mpidata_inbox *questions, *answers; /* to be forwarded; NULL likewise */
    int gone, lost; /* its one group has left, or is lost */
} mpidata_inlet;

#endif
