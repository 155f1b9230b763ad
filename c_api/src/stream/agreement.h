/* How all trainers draw the same number of batches without waiting for one another at each batch.
 *
 * Each trainer reports how many batches it is sure to draw; the least of these numbers is granted to all. A trainer reports
 * again as soon as it is sure of more than is granted, or knows that no more will come; one that can draw no more than is
 * granted (or leaves) thus ends the stream for all at the same batch. One nonblocking MPI_Iallreduce at a time; with
 * `tail: repeat` the greatest of the final numbers counts, and trainers that have fewer repeat samples.
 *
 * A checkpoint is taken on all trainers at the same batch: a trainer that knows that the scheduler has ordered one draws
 * nothing while it reports in an agreement how many batches it has drawn, and the greatest of these numbers is the place.
 * Without a stream, trainers count the batches from loaders.
 *
 * A trainer that gives its samples away (giving/giving.h) grants all that the others can draw.
 *
 * With a budget (buffer.repeats) the samples that the trainers have received are also summed, and only batches that this sum
 * allows are granted. With statistics, each agreement also exchanges the moments of all trainers. */
#ifndef MPIDATA_AGREEMENT_H
#define MPIDATA_AGREEMENT_H

#include "stream/state.h"

enum { MPIDATA_AGREEMENT_ENTRIES = 19, MPIDATA_AGREEMENT_CALLS = 3 };

typedef struct {
    MPI_Request requests[MPIDATA_AGREEMENT_CALLS];
    int under_way;
    int over;   /* the end is agreed on: no more agreements follow */
    int broken; /* a trainer has died, and the others have not met yet */
    int first;  /* the next one is the first after they have met: it determines from where on they share batches anew */
    int64_t mine[MPIDATA_AGREEMENT_ENTRIES], all[MPIDATA_AGREEMENT_ENTRIES];
    int64_t received, received_by_all; /* samples, if there is a budget */
    mpidata_moments *moments; /* this trainer's, followed by those of each, if there are statistics */
    mpidata_moments *last;    /* if trainers may die: those of each in the last completed agreement */
    int trainers;             /* number of trainers in the communicator */
} mpidata_agreement;

/* The receive thread calls it repeatedly. */
int mpidata_agree(mpidata_trainer *trainer, mpidata_agreement *agreement, int *did);

/* Only when no agreement is in progress. */
void mpidata_agreement_close(mpidata_agreement *agreement);

#endif
