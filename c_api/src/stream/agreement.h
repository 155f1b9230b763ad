/* How all trainers come to draw the same number of batches without waiting for one another at every one.
 *
 * Each trainer says how many batches it can be sure to draw; the least of these numbers is granted to all. A trainer
 * says so again as soon as it can be sure of more than is granted, or knows that there will be no more; one that can draw
 * no more than is granted (or leaves) thereby ends the stream for all at the same batch. One nonblocking MPI_Iallreduce at
 * a time; under `tail: repeat` the greatest of the final numbers counts, and who has fewer repeats samples.
 *
 * A checkpoint is taken on all trainers at the same batch: a trainer that knows that the scheduler has ordered one draws
 * nothing while it says in an agreement how many batches it has drawn, and the greatest of these numbers is the place. Where
 * there is no stream, trainers count the batches that loaders bring them.
 *
 * A trainer that gives its samples away (giving/giving.h) grants whatever the others can draw.
 *
 * Under a budget (buffer.repeats) the samples that the trainers have received are summed, too, and what this sum does not
 * allow is not granted. Where there are statistics, each agreement brings the moments of all trainers. */
#ifndef MPIDATA_AGREEMENT_H
#define MPIDATA_AGREEMENT_H

#include "stream/state.h"

enum { MPIDATA_AGREEMENT_ENTRIES = 19, MPIDATA_AGREEMENT_CALLS = 3 };

typedef struct {
    MPI_Request requests[MPIDATA_AGREEMENT_CALLS];
    int under_way;
    int over;   /* the end is agreed on: no more is said */
    int broken; /* a trainer has died, and the others have not come together yet */
    int first;  /* the next one is the first since they have: it tells from where on they share batches anew */
    int64_t mine[MPIDATA_AGREEMENT_ENTRIES], all[MPIDATA_AGREEMENT_ENTRIES];
    int64_t received, received_by_all; /* samples, where there is a budget */
    mpidata_moments *moments; /* this trainer's, and behind them those of each, where there are statistics */
    mpidata_moments *last;    /* where trainers die: those of each, as in the agreement that came to its end last */
    int trainers;             /* in the communicator: how many these are */
} mpidata_agreement;

/* The receive thread calls it again and again. */
int mpidata_agree(mpidata_trainer *trainer, mpidata_agreement *agreement, int *did);

/* No agreement is under way. */
void mpidata_agreement_close(mpidata_agreement *agreement);

#endif
