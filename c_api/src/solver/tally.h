/* The agreement of a group of several ranks after its steps: how much of each field was put (its counts), and whether to
 * stop. A group that makes more than one step in 2 ms agrees on up to 16 of them at once. */
#ifndef MPIDATA_TALLY_H
#define MPIDATA_TALLY_H

#include "base/status.h"

typedef struct {
    int n_counts;
    int64_t *added;      /* by step */
    int64_t *mine, *sum; /* the data of the agreement: the counts, then whether to stop, the next interval, and failures */
    int steps;           /* added since the last start */
    int interval;        /* steps from the last start to the next; the same on all ranks */
    int next_interval;   /* the one after it, known from the last but one start on */
    int under_way;       /* whether an agreement is in progress */
    int agreed;          /* number of its steps, may be 0 */
    int closes;          /* whether this rank ends the simulation with it */
    int64_t first;       /* the first of its steps */
    int cancelled;       /* after completion: whether the simulation is cancelled */
    int64_t closing;     /* after completion: number of ranks that end the simulation with it; */
    int64_t closed_at;   /* the sum of their steps in the simulation */
    double since;        /* time of the last start */
    MPI_Request request;
} mpidata_tally;

int mpidata_tally_open(mpidata_tally *tally, int n_counts);
void mpidata_tally_close(mpidata_tally *tally);

/* Add a step in which this rank has these counts; returns whether it is time to start. */
int mpidata_tally_add(mpidata_tally *tally, const int64_t *counts);

/* Start to agree on the added steps, of which `last` is the last. stop: 1 if this rank knows that the group must leave;
 * cancel: 1 if it knows that the simulation is cancelled.
 * failed_at: the step at which this rank cannot continue the simulation, -1: it can. closes: whether this rank ends the
 * simulation, after last + 1 steps. leads: set on the one rank of the group that times its steps.
 * Collective; tally.request must be completed. */
int mpidata_tally_start(mpidata_tally *tally, MPI_Comm group, int64_t last, int stop, int cancel, int64_t failed_at,
                        int closes, int leads);

/* After completion, and before the next start: take over the interval; returns whether to stop. *failed: number of ranks that
 * cannot continue, *failed_at: the sum of their steps. tally.sum has the counts of tally.agreed steps from tally.first on. */
int mpidata_tally_finish(mpidata_tally *tally, int64_t *failed, int64_t *failed_at);

#endif
