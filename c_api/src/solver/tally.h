/* What a group of several ranks agrees on after its steps: how much of each field was put (its counts), and whether to
 * stop. A group that makes more than one step in 2 ms agrees on several of them at once, up to 16. */
#ifndef MPIDATA_TALLY_H
#define MPIDATA_TALLY_H

#include "base/status.h"

typedef struct {
    int n_counts;
    int64_t *added;      /* by step */
    int64_t *mine, *sum; /* what is agreed on: the same, then whether to stop, the next interval, and who has failed */
    int steps;           /* added since the last start */
    int interval;        /* steps from the last start to the next; all ranks have the same one */
    int next_interval;   /* that after it, known from the last but one start on */
    int under_way;       /* an agreement is */
    int agreed;          /* steps that it is on; it may be none */
    int closes;          /* with it this rank ends the simulation */
    int64_t first;       /* of them */
    int cancelled;       /* after completion: whether the simulation is */
    int64_t closing;     /* ranks that end the simulation with it, after completion; */
    int64_t closed_at;   /* the sum of the steps that these have made in the simulation */
    double since;        /* time of the last start */
    MPI_Request request;
} mpidata_tally;

int mpidata_tally_open(mpidata_tally *tally, int n_counts);
void mpidata_tally_close(mpidata_tally *tally);

/* Add a step in which this rank has these counts; returns whether it is time to start. */
int mpidata_tally_add(mpidata_tally *tally, const int64_t *counts);

/* Begin to agree on the steps added, of which `last` is the last. stop: 1 where this rank knows that the group is to leave;
 * cancel: that the simulation is cancelled.
 * failed_at: the step at which this rank cannot go on with the simulation, -1: it can. closes: whether this rank ends the
 * simulation, after last + 1 steps. leads: on one rank of the group, which times its steps.
 * Collective; tally.request is to be completed. */
int mpidata_tally_start(mpidata_tally *tally, MPI_Comm group, int64_t last, int stop, int cancel, int64_t failed_at,
                        int closes, int leads);

/* After completion, and before the next start: take the interval over; returns whether to stop. *failed: how many ranks cannot
 * go on, *failed_at: the sum of their steps. tally.sum has the counts of tally.agreed steps from tally.first on. */
int mpidata_tally_finish(mpidata_tally *tally, int64_t *failed, int64_t *failed_at);

#endif
