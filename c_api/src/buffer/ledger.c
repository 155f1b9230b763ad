#include "buffer/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "containers/array.h"

static int64_t count_entries(const mpidata_ledger *ledger) {
    return ledger->plan->simulations + ledger->plan->validation;
}

int mpidata_ledger_open(mpidata_ledger *ledger, const mpidata_plan *plan, int trainer) {
    memset(ledger, 0, sizeof *ledger);
    ledger->plan = plan;
    ledger->trainer = trainer;
    size_t n = (size_t)count_entries(ledger);
    ledger->entries = calloc(n ? n : 1, sizeof *ledger->entries);
    if (!ledger->entries) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the ledger of %zu simulations.", n);
    for (size_t i = 0; i < n; i++) ledger->entries[i].steps = -1;
    return MPIDATA_SUCCESS;
}

void mpidata_ledger_close(mpidata_ledger *ledger) {
    if (!ledger->entries) return;
    for (int64_t i = 0; i < count_entries(ledger); i++) free(ledger->entries[i].bits);
    free(ledger->entries);
    ledger->entries = NULL;
}

int64_t mpidata_ledger_samples(const mpidata_ledger *ledger, int64_t steps) {
    int64_t span = mpidata_plan_span(ledger->plan);
    return steps > span ? steps - span : 0;
}

int64_t mpidata_ledger_own(const mpidata_ledger *ledger, int64_t simulation, int64_t steps) {
    return mpidata_plan_own(ledger->plan, ledger->trainer, simulation, steps);
}

/* If trainers may die, their steps go to others: the bits are indexed by step, and cover all trainers. */
static int is_elastic(const mpidata_ledger *ledger) { return ledger->plan->trainers_at_least > 0; }

static int64_t bit_of(const mpidata_ledger *ledger, int64_t step) {
    return is_elastic(ledger) ? step : mpidata_plan_number(ledger->plan, step);
}

static int is_own(const mpidata_ledger *ledger, int64_t simulation, int64_t step) {
    return !is_elastic(ledger) || mpidata_plan_trainer(ledger->plan, simulation, step) == ledger->trainer;
}

int mpidata_ledger_has(const mpidata_ledger *ledger, int64_t simulation, int64_t step) {
    const mpidata_ledger_entry *entry = &ledger->entries[simulation];
    if (step < entry->whole) return 1;
    int64_t bit = bit_of(ledger, step);
    return bit / 64 < entry->words && (entry->bits[bit / 64] >> (bit % 64) & 1);
}

static int reserve_words(mpidata_ledger_entry *entry, int64_t needed) {
    int64_t words = entry->words;
    if (needed <= words) return MPIDATA_SUCCESS;
    if (!mpidata_array_reserve(&entry->bits, &words, needed, 0, sizeof *entry->bits))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the ledger.");
    memset(entry->bits + entry->words, 0, (size_t)(words - entry->words) * sizeof *entry->bits);
    entry->words = words;
    return MPIDATA_SUCCESS;
}

int mpidata_ledger_enter(mpidata_ledger *ledger, int64_t simulation, int64_t step) {
    mpidata_ledger_entry *entry = &ledger->entries[simulation];
    int64_t bit = bit_of(ledger, step), word = bit / 64;
    MPIDATA_TRY(reserve_words(entry, word + 1));
    entry->bits[word] |= (uint64_t)1 << (bit % 64);
    if (step < mpidata_ledger_samples(ledger, entry->steps) && is_own(ledger, simulation, step)) entry->missing--;
    return MPIDATA_SUCCESS;
}

/* Bits of the first `n` own steps, of the given word. */
static uint64_t first_bits(int64_t n, int64_t word) {
    int64_t in_word = n - 64 * word;
    return in_word <= 0 ? 0 : in_word >= 64 ? UINT64_MAX : ((uint64_t)1 << in_word) - 1;
}

static int64_t count_bits(uint64_t bits) {
    int64_t n = 0;
    for (; bits; bits &= bits - 1) n++;
    return n;
}

static int64_t missing(const mpidata_ledger *ledger, int64_t simulation, int64_t samples) {
    const mpidata_ledger_entry *entry = &ledger->entries[simulation];
    int64_t own = mpidata_ledger_own(ledger, simulation, samples);
    int64_t held = mpidata_ledger_own(ledger, simulation, entry->whole < samples ? entry->whole : samples);
    for (int64_t word = 0; word < entry->words; word++) held += count_bits(entry->bits[word] & first_bits(own, word));
    return own - held;
}

static int64_t missing_one_by_one(const mpidata_ledger *ledger, int64_t simulation, int64_t samples) {
    int64_t n = 0;
    for (int64_t step = 0; step < samples; step++)
        n += is_own(ledger, simulation, step) && !mpidata_ledger_has(ledger, simulation, step);
    return n;
}

void mpidata_ledger_expect(mpidata_ledger *ledger, int64_t simulation, int64_t steps) {
    mpidata_ledger_entry *entry = &ledger->entries[simulation];
    const int64_t samples = mpidata_ledger_samples(ledger, steps);
    if (entry->complete && simulation >= ledger->plan->simulations) ledger->validation_complete--;
    entry->complete = 0;
    entry->steps = steps;
    entry->missing = (is_elastic(ledger) ? missing_one_by_one : missing)(ledger, simulation, samples);
}

int mpidata_ledger_lacks(mpidata_ledger *ledger, int64_t simulation) {
    mpidata_ledger_entry *entry = &ledger->entries[simulation];
    if (entry->steps < 0) return 0;
    entry->missing = missing_one_by_one(ledger, simulation, mpidata_ledger_samples(ledger, entry->steps));
    if (entry->missing && entry->complete) mpidata_ledger_expect(ledger, simulation, entry->steps);
    return entry->missing > 0;
}

int64_t mpidata_ledger_count(const mpidata_ledger *ledger, int trainer) {
    int64_t n = 0;
    for (int64_t i = 0; i < ledger->plan->simulations; i++) {
        const mpidata_ledger_entry *entry = &ledger->entries[i];
        const int64_t end = entry->whole > 64 * entry->words ? entry->whole : 64 * entry->words;
        for (int64_t step = 0; step < end; step++)
            n += mpidata_ledger_has(ledger, i, step) && mpidata_plan_trainer(ledger->plan, i, step) == trainer;
    }
    return n;
}

/* From now on every own step below `whole` has been received: the bits cover only later ones. */
static void raise_whole(mpidata_ledger *ledger, int64_t simulation, int64_t whole) {
    mpidata_ledger_entry *entry = &ledger->entries[simulation];
    if (whole <= entry->whole) return;
    entry->whole = whole;
    int64_t own = mpidata_ledger_own(ledger, simulation, whole);
    uint64_t further = 0;
    for (int64_t word = 0; word < entry->words; word++) further |= entry->bits[word] &= ~first_bits(own, word);
    if (further) return;
    free(entry->bits);
    entry->bits = NULL;
    entry->words = 0;
}

static void become_complete(mpidata_ledger *ledger, int64_t simulation) {
    mpidata_ledger_entry *entry = &ledger->entries[simulation];
    entry->complete = 1;
    if (!is_elastic(ledger)) raise_whole(ledger, simulation, mpidata_ledger_samples(ledger, entry->steps));
    if (simulation >= ledger->plan->simulations) ledger->validation_complete++;
}

int mpidata_ledger_completed(mpidata_ledger *ledger, int64_t simulation) {
    const mpidata_ledger_entry *entry = &ledger->entries[simulation];
    if (entry->complete || entry->steps < 0 || entry->missing > 0) return 0;
    become_complete(ledger, simulation);
    return 1;
}

int64_t mpidata_ledger_words(const mpidata_ledger *ledger) {
    int64_t words = 0;
    for (int64_t i = 0; i < count_entries(ledger); i++) words += ledger->entries[i].words;
    return words;
}

void mpidata_ledger_export(const mpidata_ledger *ledger, int64_t *steps, int64_t *whole, uint8_t *complete,
                           int64_t *words, uint64_t *bits) {
    for (int64_t i = 0; i < count_entries(ledger); i++) {
        const mpidata_ledger_entry *entry = &ledger->entries[i];
        steps[i] = entry->steps;
        whole[i] = entry->whole;
        complete[i] = (uint8_t)entry->complete;
        words[i] = entry->words;
        if (entry->words) memcpy(bits, entry->bits, (size_t)entry->words * sizeof *bits);
        bits += entry->words;
    }
}

void mpidata_ledger_import(mpidata_ledger *ledger, const int64_t *steps) {
    for (int64_t i = 0; i < count_entries(ledger); i++) {
        if (steps[i] < 0) continue;
        ledger->entries[i].steps = steps[i];
        become_complete(ledger, i);
        raise_whole(ledger, i, mpidata_ledger_samples(ledger, steps[i])); /* all trainers hold it */
    }
}

int mpidata_ledger_leave_out(mpidata_ledger *ledger, int64_t simulation, int64_t step) {
    mpidata_ledger_entry *entry = &ledger->entries[simulation];
    const int64_t whole = entry->whole;
    if (step < whole) { /* from now on each of them has a bit */
        entry->whole = 0;
        for (int64_t i = 0; i < whole; i++) MPIDATA_TRY(mpidata_ledger_enter(ledger, simulation, i));
        entry->missing = 0;
    }
    const int64_t bit = bit_of(ledger, step);
    if (bit / 64 < entry->words) entry->bits[bit / 64] &= ~((uint64_t)1 << (bit % 64));
    return MPIDATA_SUCCESS;
}

int mpidata_ledger_copy(mpidata_ledger *copy, const mpidata_ledger *ledger) {
    MPIDATA_TRY(mpidata_ledger_open(copy, ledger->plan, ledger->trainer));
    for (int64_t i = 0; i < count_entries(ledger); i++) {
        const mpidata_ledger_entry *entry = &ledger->entries[i];
        copy->entries[i] = *entry;
        copy->entries[i].bits = NULL;
        copy->entries[i].words = 0;
        MPIDATA_TRY(reserve_words(&copy->entries[i], entry->words));
        if (entry->words) memcpy(copy->entries[i].bits, entry->bits, (size_t)entry->words * sizeof *entry->bits);
    }
    return MPIDATA_SUCCESS;
}

int mpidata_ledger_learn(mpidata_ledger *ledger, int64_t simulation, int64_t steps, int64_t whole, int64_t words,
                         const uint64_t *bits) {
    mpidata_ledger_entry *entry = &ledger->entries[simulation];
    MPIDATA_TRY(reserve_words(entry, words));
    for (int64_t word = 0; word < words; word++) entry->bits[word] |= bits[word];
    if (whole > entry->whole) entry->whole = whole;
    if (entry->steps < 0 && steps >= 0) { /* it was complete before a resume */
        entry->steps = steps;
        become_complete(ledger, simulation);
    }
    return MPIDATA_SUCCESS;
}

int64_t mpidata_ledger_steps(const mpidata_ledger *ledger) {
    int64_t steps = -1;
    for (int64_t i = 0; i < ledger->plan->simulations; i++) {
        int64_t known = ledger->entries[i].steps;
        if (known >= 0 && steps >= 0 && known != steps) return -1;
        if (known >= 0) steps = known;
    }
    return steps;
}
