#include "check.h"
#include "example_plan.h"
#include "buffer/ledger.h"

#define COUNT 13 /* simulations, the last 3 for validation */

static mpidata_plan plan;

static void enter(mpidata_ledger *ledger, int64_t simulation, int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; step += 2) {
        CHECK(!mpidata_ledger_has(ledger, simulation, step));
        CHECK(!mpidata_ledger_enter(ledger, simulation, step));
        CHECK(mpidata_ledger_has(ledger, simulation, step));
    }
}

static void own_steps(mpidata_ledger *ledgers) {
    for (int64_t simulation = 0; simulation < COUNT; simulation++)
        for (int64_t steps = 0; steps < 7; steps++) {
            int64_t own[2] = {0, 0};
            for (int64_t step = 0; step < steps; step++) own[mpidata_plan_trainer(&plan, simulation, step)]++;
            for (int t = 0; t < 2; t++) CHECK(mpidata_ledger_own(&ledgers[t], simulation, steps) == own[t]);
        }
}

static void steps_of_all(mpidata_ledger *ledger) {
    CHECK(mpidata_ledger_steps(ledger) == -1);
    mpidata_ledger_expect(ledger, COUNT - 1, 9); /* a validation simulation */
    CHECK(mpidata_ledger_steps(ledger) == -1);
    mpidata_ledger_expect(ledger, 4, 7);
    mpidata_ledger_expect(ledger, 9, 7);
    CHECK(mpidata_ledger_steps(ledger) == 7);
    mpidata_ledger_expect(ledger, 0, 0);
    CHECK(mpidata_ledger_steps(ledger) == -1);
}

static void one_try(mpidata_ledger *ledger) {
    /* Simulation 3 has 301 steps; trainer 1 has the even ones, which come in reverse order. */
    for (int64_t step = 300; step >= 2; step -= 2) {
        CHECK(!mpidata_ledger_has(ledger, 3, step));
        CHECK(!mpidata_ledger_enter(ledger, 3, step));
        CHECK(mpidata_ledger_has(ledger, 3, step) && !mpidata_ledger_has(ledger, 3, step - 2));
        CHECK(!mpidata_ledger_completed(ledger, 3));
    }
    mpidata_ledger_expect(ledger, 3, 301);
    CHECK(!mpidata_ledger_completed(ledger, 3));
    enter(ledger, 3, 0, 0);
    CHECK(mpidata_ledger_completed(ledger, 3) && !mpidata_ledger_completed(ledger, 3));
    CHECK(mpidata_ledger_has(ledger, 3, 300)); /* a repeated step is known */
    CHECK(!ledger->entries[3].bits);
    mpidata_ledger_expect(ledger, 5, 2);
    CHECK(!mpidata_ledger_completed(ledger, 5));
    mpidata_ledger_expect(ledger, 6, 0);
    CHECK(mpidata_ledger_completed(ledger, 6));
}

static void further_tries(mpidata_ledger *ledger) {
    /* The same number again: complete at once, and reported again. */
    mpidata_ledger_expect(ledger, 3, 301);
    CHECK(mpidata_ledger_completed(ledger, 3) && !mpidata_ledger_completed(ledger, 3));
    /* More steps: the steps of the first try stay, and the additional ones are wanted. */
    mpidata_ledger_expect(ledger, 3, 305);
    CHECK(!mpidata_ledger_completed(ledger, 3) && mpidata_ledger_has(ledger, 3, 300));
    enter(ledger, 3, 302, 302);
    CHECK(!mpidata_ledger_completed(ledger, 3));
    enter(ledger, 3, 304, 304);
    CHECK(mpidata_ledger_completed(ledger, 3) && mpidata_ledger_has(ledger, 3, 304));
    /* Fewer: the additional ones stay known. */
    mpidata_ledger_expect(ledger, 3, 200);
    CHECK(mpidata_ledger_completed(ledger, 3) && mpidata_ledger_has(ledger, 3, 304));
    mpidata_ledger_expect(ledger, 3, 305);
    CHECK(mpidata_ledger_completed(ledger, 3));

    /* A try with 300 steps whose last one came, then one with 100, then one with 302. */
    enter(ledger, 7, 298, 298);
    enter(ledger, 7, 0, 96);
    mpidata_ledger_expect(ledger, 7, 300);
    CHECK(!mpidata_ledger_completed(ledger, 7));
    mpidata_ledger_expect(ledger, 7, 100);
    CHECK(!mpidata_ledger_completed(ledger, 7));
    enter(ledger, 7, 98, 98);
    CHECK(mpidata_ledger_completed(ledger, 7));
    CHECK(mpidata_ledger_has(ledger, 7, 298) && !mpidata_ledger_has(ledger, 7, 100));
    mpidata_ledger_expect(ledger, 7, 302);
    enter(ledger, 7, 100, 296);
    CHECK(!mpidata_ledger_completed(ledger, 7));
    enter(ledger, 7, 300, 300);
    CHECK(mpidata_ledger_completed(ledger, 7) && !ledger->entries[7].bits);
}

static void validation(mpidata_ledger *ledger) {
    for (int64_t simulation = 10; simulation < COUNT; simulation++) {
        mpidata_ledger_expect(ledger, simulation, 0);
        CHECK(mpidata_ledger_completed(ledger, simulation) && ledger->validation_complete == simulation - 9);
    }
    mpidata_ledger_expect(ledger, 11, 4);
    CHECK(!mpidata_ledger_completed(ledger, 11) && ledger->validation_complete == 2);
    enter(ledger, 11, 0, 2);
    CHECK(mpidata_ledger_completed(ledger, 11) && ledger->validation_complete == 3);
    mpidata_ledger_expect(ledger, 11, 4);
    CHECK(mpidata_ledger_completed(ledger, 11) && ledger->validation_complete == 3);
}

static void export_and_import(mpidata_ledger *ledger) {
    int64_t steps[COUNT], whole[COUNT], words[COUNT];
    uint8_t complete[COUNT];
    uint64_t bits[100];
    enter(ledger, 8, 129, 255); /* own steps 64 to 127 of simulation 8; trainer 1 has the odd ones */
    CHECK(mpidata_ledger_words(ledger) == 2);
    mpidata_ledger_export(ledger, steps, whole, complete, words, bits);
    CHECK(complete[3] && steps[3] == 305 && whole[3] == 305 && !words[3]);
    CHECK(!complete[8] && steps[8] == -1 && !whole[8] && words[8] == 2 && !bits[0] && bits[1] == UINT64_MAX);

    mpidata_ledger again;
    CHECK(!mpidata_ledger_open(&again, &plan, 1));
    for (int i = 0; i < COUNT; i++)
        if (!complete[i]) steps[i] = -1;
    mpidata_ledger_import(&again, steps);
    CHECK(again.validation_complete == 3);
    CHECK(!mpidata_ledger_completed(&again, 3) && mpidata_ledger_has(&again, 3, 304) && !mpidata_ledger_has(&again, 3, 306));
    mpidata_ledger_expect(&again, 3, 305);
    CHECK(mpidata_ledger_completed(&again, 3));
    enter(&again, 8, 129, 255);
    mpidata_ledger_close(&again);
}

/* Each trainer's ledger has what both were trained on; after a death, the dead trainer's other samples are missing. */
static void a_death(void) {
    mpidata_plan elastic;
    mpidata_ledger ledger;
    CHECK(mpidata_plan_parse(example_plan, &elastic) == MPIDATA_SUCCESS);
    elastic.trainers_at_least = 1;
    CHECK(!mpidata_ledger_open(&ledger, &elastic, 1));
    mpidata_ledger_expect(&ledger, 3, 100);
    for (int64_t step = 0; step < 100; step += 2) { /* its own: the even steps of simulation 3 */
        CHECK(!mpidata_ledger_completed(&ledger, 3));
        CHECK(!mpidata_ledger_enter(&ledger, 3, step));
    }
    CHECK(!mpidata_ledger_enter(&ledger, 3, 1)); /* trained on by the other trainer */
    CHECK(mpidata_ledger_completed(&ledger, 3) && !mpidata_ledger_lacks(&ledger, 3) && !mpidata_ledger_completed(&ledger, 3));
    CHECK(mpidata_ledger_has(&ledger, 3, 1) && !mpidata_ledger_has(&ledger, 3, 3));
    CHECK(!mpidata_plan_change(&elastic, 0, 0));
    CHECK(mpidata_ledger_lacks(&ledger, 3) && ledger.entries[3].missing == 49 && !mpidata_ledger_completed(&ledger, 3));
    CHECK(!mpidata_ledger_lacks(&ledger, 4)); /* nothing is known of it */
    for (int64_t step = 3; step < 100; step += 2) CHECK(!mpidata_ledger_enter(&ledger, 3, step));
    CHECK(mpidata_ledger_completed(&ledger, 3) && !mpidata_ledger_lacks(&ledger, 3));
    mpidata_ledger_close(&ledger);
    mpidata_plan_free(&elastic);
}

/* A joining trainer learns what was trained on: a copy of another's ledger without the samples not drawn. */
static void a_ledger_for_one_that_joins(void) {
    mpidata_plan elastic;
    mpidata_ledger ledger, copy, joins;
    int64_t steps[COUNT];
    for (int i = 0; i < COUNT; i++) steps[i] = i == 2 ? 80 : -1;
    CHECK(mpidata_plan_parse(example_plan, &elastic) == MPIDATA_SUCCESS);
    elastic.trainers_at_least = 1;
    CHECK(!mpidata_ledger_open(&ledger, &elastic, 0) && !mpidata_ledger_open(&joins, &elastic, 1));
    mpidata_ledger_import(&ledger, steps);
    for (int64_t step = 0; step < 70; step++) CHECK(!mpidata_ledger_enter(&ledger, 3, step));
    CHECK(!mpidata_ledger_copy(&copy, &ledger));
    CHECK(!mpidata_ledger_leave_out(&copy, 2, 5) && !mpidata_ledger_leave_out(&copy, 3, 69));
    CHECK(mpidata_ledger_has(&ledger, 2, 5) && mpidata_ledger_has(&ledger, 3, 69));
    for (int64_t i = 0; i < COUNT; i++) {
        const mpidata_ledger_entry *entry = &copy.entries[i];
        CHECK(!mpidata_ledger_learn(&joins, i, entry->steps, entry->whole, entry->words, entry->bits));
    }
    CHECK(mpidata_ledger_has(&joins, 2, 4) && !mpidata_ledger_has(&joins, 2, 5) && mpidata_ledger_has(&joins, 3, 68));
    CHECK(!mpidata_ledger_has(&joins, 3, 69) && joins.entries[2].complete && !mpidata_ledger_completed(&joins, 3));
    CHECK(mpidata_ledger_lacks(&joins, 2) == (mpidata_plan_trainer(&elastic, 2, 5) == 1));
    mpidata_ledger_close(&ledger);
    mpidata_ledger_close(&copy);
    mpidata_ledger_close(&joins);
    mpidata_plan_free(&elastic);
}

/* In a resumed run simulation 2 is complete, and the other trainer still has two of its steps to draw. */
static void a_death_after_a_resume(void) {
    mpidata_plan elastic;
    mpidata_ledger ledger;
    int64_t steps[COUNT];
    for (int i = 0; i < COUNT; i++) steps[i] = i == 2 || i == 5 ? 80 : -1;
    CHECK(mpidata_plan_parse(example_plan, &elastic) == MPIDATA_SUCCESS);
    elastic.trainers_at_least = 1;
    CHECK(!mpidata_ledger_open(&ledger, &elastic, 0));
    mpidata_ledger_import(&ledger, steps);
    CHECK(mpidata_ledger_has(&ledger, 2, 79) && !mpidata_ledger_has(&ledger, 2, 80));
    CHECK(!mpidata_ledger_leave_out(&ledger, 2, 3) && !mpidata_ledger_leave_out(&ledger, 2, 71));
    CHECK(!mpidata_ledger_has(&ledger, 2, 3) && !mpidata_ledger_has(&ledger, 2, 71) && mpidata_ledger_has(&ledger, 2, 4));
    CHECK(!mpidata_ledger_lacks(&ledger, 2) && ledger.entries[2].complete);
    CHECK(!mpidata_plan_change(&elastic, 1, 0));
    CHECK(mpidata_ledger_lacks(&ledger, 2) && ledger.entries[2].missing == 2 && !mpidata_ledger_lacks(&ledger, 5));
    mpidata_ledger_close(&ledger);
    mpidata_plan_free(&elastic);
}

int main(void) {
    mpidata_ledger ledgers[2];
    CHECK(mpidata_plan_parse(example_plan, &plan) == MPIDATA_SUCCESS);
    for (int t = 0; t < 2; t++) CHECK(!mpidata_ledger_open(&ledgers[t], &plan, t));
    own_steps(ledgers);
    steps_of_all(&ledgers[0]);
    one_try(&ledgers[1]);
    further_tries(&ledgers[1]);
    validation(&ledgers[1]);
    export_and_import(&ledgers[1]);
    a_death();
    a_death_after_a_resume();
    a_ledger_for_one_that_joins();
    for (int t = 0; t < 2; t++) mpidata_ledger_close(&ledgers[t]);
    mpidata_plan_free(&plan);
    return 0;
}
