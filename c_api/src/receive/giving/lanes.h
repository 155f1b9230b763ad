/* The way of samples from trainers that give to those that draw, one after another to each: the next one leaves when the one
 * before has been taken in, which waits for room in the buffer there. None gets more than one more than another, so that all
 * have as many left to draw. The receive thread's own; it takes the trainer's lock. */
#ifndef MPIDATA_LANES_H
#define MPIDATA_LANES_H

#include "stream/state.h"

/* To one trainer. */
typedef struct {
    MPI_Request request;
    int64_t *message; /* under way; NULL: none */
    int64_t handed;   /* samples */
} mpidata_lane;

typedef struct {
    mpidata_trainer *trainer;
    mpidata_lane *lanes; /* by trainer; NULL: no trainer gives */
    MPI_Request request;
    int64_t *message, words; /* that is being received; NULL: none */
} mpidata_lanes;

/* Send what there is to give, and take what has come if there is room; *did becomes 1 if there was anything. */
int mpidata_lanes_round(mpidata_lanes *lanes, int *did);

/* Frees what nobody uses; returns whether MPI still uses the rest. */
int mpidata_lanes_close(mpidata_lanes *lanes);

#endif
