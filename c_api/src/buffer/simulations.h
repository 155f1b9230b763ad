/* How many samples of each simulation are in a reservoir, which so forgets none of them while others have many. Not thread-safe. */
#ifndef MPIDATA_SIMULATIONS_H
#define MPIDATA_SIMULATIONS_H

#include "buffer/slots.h"
#include "buffer/windows.h"

typedef struct {
    const mpidata_slots *slots;
    const mpidata_windows *windows; /* whose numbers are counted; NULL: those of slots */
    int64_t *counts;                /* by simulation; NULL: nothing is counted, and all are as common */
} mpidata_simulations;

/* Count those of simulations 0 ... n - 1; -1 where memory is short. */
int mpidata_simulations_open(mpidata_simulations *simulations, const mpidata_slots *slots, const mpidata_windows *windows, int64_t n);
void mpidata_simulations_close(mpidata_simulations *simulations);

/* A sample enters (1), or leaves (-1). */
void mpidata_simulations_count(mpidata_simulations *simulations, int64_t number, int by);

/* How many samples there are of this one's simulation. */
int64_t mpidata_simulations_of(const mpidata_simulations *simulations, int64_t number);

#endif
