/* The ledger of a trainer: which steps of which simulations it has received, so that each counts exactly once. A trainer
 * receives every trainers-th step of a simulation. Not thread-safe. */
#ifndef MPIDATA_LEDGER_H
#define MPIDATA_LEDGER_H

#include "plan.h"

typedef struct {
    uint64_t *bits; /* own steps received, in order; NULL once complete, or before the first */
    int64_t words;
    int64_t received;
    int64_t steps; /* all steps of the simulation, -1: not known yet */
    int complete;
} mpidata_ledger_entry;

typedef struct {
    const mpidata_plan *plan;
    int trainer;
    mpidata_ledger_entry *entries; /* one per simulation */
} mpidata_ledger;

int mpidata_ledger_open(mpidata_ledger *ledger, const mpidata_plan *plan, int trainer);
void mpidata_ledger_close(mpidata_ledger *ledger);

int mpidata_ledger_has(const mpidata_ledger *ledger, int64_t simulation, int64_t step);

/* Enter a step that is not there yet. */
int mpidata_ledger_enter(mpidata_ledger *ledger, int64_t simulation, int64_t step);

/* The simulation has `steps` steps in all. */
int mpidata_ledger_expect(mpidata_ledger *ledger, int64_t simulation, int64_t steps);

/* Has the simulation just become complete? True once. */
int mpidata_ledger_completed(mpidata_ledger *ledger, int64_t simulation);

/* Steps of a simulation of `steps` steps that are this trainer's. */
int64_t mpidata_ledger_own(const mpidata_ledger *ledger, int64_t simulation, int64_t steps);

#endif
