/* The ledger of a trainer: which samples of which simulations it has received, so that each counts exactly once. A sample
 * goes by its step, a window of several by its first one. A trainer receives every trainers-th run of samples_run samples
 * of a simulation: its own steps. In an elastic job the bits go by step, and also say what others have trained on, so that
 * it does not count again when they die. Not thread-safe. */
#ifndef MPIDATA_LEDGER_H
#define MPIDATA_LEDGER_H

#include "wire/plan.h"

enum { MPIDATA_CANCEL_ASKED = 1, MPIDATA_CANCEL_TOLD };

typedef struct {
    uint64_t *bits;  /* own steps received from `whole` on, by their number among the own steps; NULL: none */
    int64_t words;
    int64_t whole;   /* every own step below this one has been received */
    int64_t steps;   /* all steps of the simulation, -1: not known yet */
    int64_t missing; /* own samples among `steps` still to come, where these are known */
    int32_t expected_by; /* the try that told `steps` */
    int complete;    /* mpidata_ledger_completed has said so of these `steps` */
    int cancelled;   /* MPIDATA_CANCEL_ASKED by this trainer; _TOLD by the scheduler: what comes is dropped */
} mpidata_ledger_entry;

typedef struct {
    const mpidata_plan *plan;
    int trainer;
    mpidata_ledger_entry *entries; /* one per simulation */
    int64_t validation_complete;   /* validation simulations that are complete */
} mpidata_ledger;

int mpidata_ledger_open(mpidata_ledger *ledger, const mpidata_plan *plan, int trainer);
void mpidata_ledger_close(mpidata_ledger *ledger);

int mpidata_ledger_has(const mpidata_ledger *ledger, int64_t simulation, int64_t step);

/* Enter a step that is not there yet. One that is past the expected number counts too: it may be of another try. */
int mpidata_ledger_enter(mpidata_ledger *ledger, int64_t simulation, int64_t step);

/* The simulation has `steps` steps in all. May come again, with another number too, when a further try has ended: the
 * last one holds, and the simulation becomes complete once more. */
void mpidata_ledger_expect(mpidata_ledger *ledger, int64_t simulation, int64_t steps);

/* A trainer has died, and others have its steps: does this one lack any now? */
int mpidata_ledger_lacks(mpidata_ledger *ledger, int64_t simulation);

/* In an elastic job: samples that are trained on and there, and that came to this trainer, or would today. */
int64_t mpidata_ledger_count(const mpidata_ledger *ledger, int trainer);

/* Has the simulation just become complete: are all own steps below the expected number there? True once per expect. */
int mpidata_ledger_completed(mpidata_ledger *ledger, int64_t simulation);

/* Samples of a simulation of `steps` steps: as many as have their last step, too. */
int64_t mpidata_ledger_samples(const mpidata_ledger *ledger, int64_t steps);

/* Of the first `steps` steps of a simulation, those that are this trainer's. */
int64_t mpidata_ledger_own(const mpidata_ledger *ledger, int64_t simulation, int64_t steps);

/* Steps of each simulation that is trained on, -1 where they are not all known to be the same, or none is known. */
int64_t mpidata_ledger_steps(const mpidata_ledger *ledger);

/* -- for a checkpoint: arrays have one element per simulation -- */

/* Length of `bits` of mpidata_ledger_export. */
int64_t mpidata_ledger_words(const mpidata_ledger *ledger);

/* steps, whole, complete, words: those of the entries; bits: all entries' bits, one after the other. */
void mpidata_ledger_export(const mpidata_ledger *ledger, int64_t *steps, int64_t *whole, uint8_t *complete,
                           int64_t *words, uint64_t *bits);

/* In an elastic job: another trainer goes on with this sample, which a ledger that was filled says is there. */
int mpidata_ledger_leave_out(mpidata_ledger *ledger, int64_t simulation, int64_t step);

/* A copy, to be closed also where it could not be made. */
int mpidata_ledger_copy(mpidata_ledger *copy, const mpidata_ledger *ledger);

/* In an elastic job: take over what another ledger says of a simulation: that its samples are there, and how many steps it has. */
int mpidata_ledger_learn(mpidata_ledger *ledger, int64_t simulation, int64_t steps, int64_t whole, int64_t words,
                         const uint64_t *bits);

/* Fill an empty ledger: simulation i is complete with steps[i] steps, or, where these are -1, has nothing yet. */
void mpidata_ledger_import(mpidata_ledger *ledger, const int64_t *steps);

#endif
