#include "ledger.h"

#include <stdlib.h>
#include <string.h>

int mpidata_ledger_open(mpidata_ledger *ledger, const mpidata_plan *plan, int trainer) {
    size_t n = (size_t)(plan->simulations + plan->validation);
    ledger->plan = plan;
    ledger->trainer = trainer;
    ledger->entries = calloc(n ? n : 1, sizeof *ledger->entries);
    if (!ledger->entries) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the ledger of %zu simulations.", n);
    for (size_t i = 0; i < n; i++) ledger->entries[i].steps = -1;
    return MPIDATA_SUCCESS;
}

void mpidata_ledger_close(mpidata_ledger *ledger) {
    if (!ledger->entries) return;
    for (int64_t i = 0; i < ledger->plan->simulations + ledger->plan->validation; i++) free(ledger->entries[i].bits);
    free(ledger->entries);
    ledger->entries = NULL;
}

/* First step of a simulation that is this trainer's. */
static int64_t first_step(const mpidata_ledger *ledger, int64_t simulation) {
    int64_t trainers = ledger->plan->trainers;
    return (ledger->trainer - simulation % trainers + trainers) % trainers;
}

int64_t mpidata_ledger_own(const mpidata_ledger *ledger, int64_t simulation, int64_t steps) {
    int64_t after = steps - first_step(ledger, simulation), trainers = ledger->plan->trainers;
    return after <= 0 ? 0 : (after + trainers - 1) / trainers;
}

int mpidata_ledger_has(const mpidata_ledger *ledger, int64_t simulation, int64_t step) {
    const mpidata_ledger_entry *entry = &ledger->entries[simulation];
    int64_t bit = step / ledger->plan->trainers;
    if (entry->complete) return 1;
    return bit / 64 < entry->words && (entry->bits[bit / 64] >> (bit % 64) & 1);
}

int mpidata_ledger_enter(mpidata_ledger *ledger, int64_t simulation, int64_t step) {
    mpidata_ledger_entry *entry = &ledger->entries[simulation];
    int64_t bit = step / ledger->plan->trainers, word = bit / 64;
    if (entry->steps >= 0 && step >= entry->steps)
        return mpidata_error(MPIDATA_ERR_WIRE, "Simulation %lld ended after %lld steps, but its step %lld arrived.",
                             (long long)simulation, (long long)entry->steps, (long long)step);
    if (word >= entry->words) {
        int64_t words = word + 1 > 2 * entry->words ? word + 1 : 2 * entry->words;
        uint64_t *grown = realloc(entry->bits, (size_t)words * sizeof *grown);
        if (!grown) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the ledger.");
        memset(grown + entry->words, 0, (size_t)(words - entry->words) * sizeof *grown);
        entry->bits = grown;
        entry->words = words;
    }
    entry->bits[word] |= (uint64_t)1 << (bit % 64);
    entry->received++;
    return MPIDATA_SUCCESS;
}

int mpidata_ledger_expect(mpidata_ledger *ledger, int64_t simulation, int64_t steps) {
    mpidata_ledger_entry *entry = &ledger->entries[simulation];
    entry->steps = steps;
    if (entry->received > mpidata_ledger_own(ledger, simulation, steps))
        return mpidata_error(MPIDATA_ERR_WIRE, "Simulation %lld ended after %lld steps, but more of them arrived.",
                             (long long)simulation, (long long)steps);
    return MPIDATA_SUCCESS;
}

int mpidata_ledger_completed(mpidata_ledger *ledger, int64_t simulation) {
    mpidata_ledger_entry *entry = &ledger->entries[simulation];
    if (entry->complete || entry->steps < 0 || entry->received < mpidata_ledger_own(ledger, simulation, entry->steps))
        return 0;
    free(entry->bits);
    entry->bits = NULL;
    entry->words = 0;
    entry->complete = 1;
    return 1;
}
