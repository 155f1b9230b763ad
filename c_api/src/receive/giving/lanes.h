/* Sending of samples from trainers that give to those that draw, one at a time to each: the next one leaves when the previous
 * one has been taken in, which waits for room in the buffer there. The numbers that they get differ by at most one, so that
 * all have equally many left to draw. Only for the receive thread; takes the trainer's lock. */
#ifndef MPIDATA_LANES_H
#define MPIDATA_LANES_H

#include "stream/state.h"

/* To one trainer. */
typedef struct {
    MPI_Request request;
    int64_t *message; /* in flight; NULL: none */
    int64_t handed;   /* samples */
} mpidata_lane;

typedef struct {
    mpidata_trainer *trainer;
    mpidata_lane *lanes; /* by trainer; NULL: no trainer gives */
    MPI_Request request;
    int64_t *message, words; /* that is being received; NULL: none */
} mpidata_lanes;

/* Send samples to give, and take those that have come if there is room; *did becomes 1 if there was work. */
int mpidata_lanes_round(mpidata_lanes *lanes, int *did);

/* Frees unused memory; returns whether MPI still uses the rest. */
int mpidata_lanes_close(mpidata_lanes *lanes);

#endif
