#include "buffer/simulations.h"

#include <stdlib.h>
#include <string.h>

int mpidata_simulations_open(mpidata_simulations *simulations, const mpidata_slots *slots, const mpidata_windows *windows, int64_t n) {
    simulations->slots = slots;
    simulations->windows = windows;
    simulations->counts = calloc((size_t)(n > 0 ? n : 1), sizeof *simulations->counts);
    return simulations->counts ? 0 : -1;
}

void mpidata_simulations_close(mpidata_simulations *simulations) {
    free(simulations->counts);
    memset(simulations, 0, sizeof *simulations);
}

/* Of the sample; of a window's first step, as all are of one. */
static int64_t simulation_of(const mpidata_simulations *simulations, int64_t number) {
    const int64_t slot = simulations->windows ? *mpidata_windows_steps(simulations->windows, number) : number;
    return *simulations->slots->slots[slot]->simulation;
}

void mpidata_simulations_count(mpidata_simulations *simulations, int64_t number, int by) {
    if (simulations->counts) simulations->counts[simulation_of(simulations, number)] += by;
}

int64_t mpidata_simulations_of(const mpidata_simulations *simulations, int64_t number) {
    return simulations->counts ? simulations->counts[simulation_of(simulations, number)] : 0;
}
