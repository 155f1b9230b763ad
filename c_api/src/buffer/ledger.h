/* The ledger of a trainer: which samples of which simulations it has received, so that each counts exactly once. A sample
 * is identified by its step, a window by its first step. A trainer receives every trainers-th run of samples_run samples of a
 * simulation: its own steps. In an elastic job the bits are indexed by step, and also cover samples that others have trained
 * on, so that these do not count again when those trainers die. Not thread-safe. */
#ifndef MPIDATA_LEDGER_H
#define MPIDATA_LEDGER_H

#include "wire/plan.h"

enum { MPIDATA_CANCEL_ASKED = 1, MPIDATA_CANCEL_TOLD };

typedef struct {
    uint64_t *bits;  /* own steps from `whole` on that were received, by their number among the own steps; NULL: none */
    int64_t words;
    int64_t whole;   /* every own step below this one has been received */
    int64_t steps;   /* all steps of the simulation, -1: not known yet */
    int64_t missing; /* own samples among `steps` that have not come, if `steps` is known */
    int32_t expected_by; /* the try that reported `steps` */
    int complete;    /* mpidata_ledger_completed has reported these `steps` */
    int cancelled;   /* MPIDATA_CANCEL_ASKED by this trainer; _TOLD by the scheduler: later samples are dropped */
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

/* Enter a new step. One beyond the expected number also counts: it may belong to another try. */
int mpidata_ledger_enter(mpidata_ledger *ledger, int64_t simulation, int64_t step);

/* The simulation has `steps` steps in total. May be called again, even with another number, when a further try has ended: the
 * last call counts, and the simulation becomes complete once more. */
void mpidata_ledger_expect(mpidata_ledger *ledger, int64_t simulation, int64_t steps);

/* After a trainer has died and others have its steps: whether this one lacks any now. */
int mpidata_ledger_lacks(mpidata_ledger *ledger, int64_t simulation);

/* In an elastic job: received samples for training that came to this trainer, or would come to it now. */
int64_t mpidata_ledger_count(const mpidata_ledger *ledger, int trainer);

/* Whether the simulation has just become complete: all own steps below the expected number have come. True once per expect. */
int mpidata_ledger_completed(mpidata_ledger *ledger, int64_t simulation);

/* Samples of a simulation of `steps` steps: those whose last step is among them. */
int64_t mpidata_ledger_samples(const mpidata_ledger *ledger, int64_t steps);

/* This trainer's share of the first `steps` steps of a simulation. */
int64_t mpidata_ledger_own(const mpidata_ledger *ledger, int64_t simulation, int64_t steps);

/* Steps of each simulation that is trained on, -1 if they are not all known to be equal, or none is known. */
int64_t mpidata_ledger_steps(const mpidata_ledger *ledger);

/* -- for a checkpoint: arrays have one element per simulation -- */

/* Length of `bits` of mpidata_ledger_export. */
int64_t mpidata_ledger_words(const mpidata_ledger *ledger);

/* steps, whole, complete, words: those of the entries; bits: all entries' bits, one after the other. */
void mpidata_ledger_export(const mpidata_ledger *ledger, int64_t *steps, int64_t *whole, uint8_t *complete,
                           int64_t *words, uint64_t *bits);

/* In an elastic job: remove this sample from a filled ledger, because another trainer takes it over. */
int mpidata_ledger_leave_out(mpidata_ledger *ledger, int64_t simulation, int64_t step);

/* Make a copy, which must be closed even if this fails. */
int mpidata_ledger_copy(mpidata_ledger *copy, const mpidata_ledger *ledger);

/* In an elastic job: take over the state of a simulation from another ledger: its received samples and its number of steps. */
int mpidata_ledger_learn(mpidata_ledger *ledger, int64_t simulation, int64_t steps, int64_t whole, int64_t words,
                         const uint64_t *bits);

/* Fill an empty ledger: simulation i is complete with steps[i] steps, or, if that is -1, has nothing yet. */
void mpidata_ledger_import(mpidata_ledger *ledger, const int64_t *steps);

#endif
