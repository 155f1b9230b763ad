#include "check.h"
#include "example_plan.h"
#include "ledger.h"

int main(void) {
    mpidata_plan plan;
    mpidata_ledger ledgers[2];
    CHECK(mpidata_plan_parse(example_plan, &plan) == MPIDATA_SUCCESS);
    for (int t = 0; t < 2; t++) CHECK(!mpidata_ledger_open(&ledgers[t], &plan, t));

    for (int64_t simulation = 0; simulation < 13; simulation++)
        for (int64_t steps = 0; steps < 7; steps++) {
            int64_t own[2] = {0, 0};
            for (int64_t step = 0; step < steps; step++) own[mpidata_plan_trainer(&plan, simulation, step)]++;
            for (int t = 0; t < 2; t++) CHECK(mpidata_ledger_own(&ledgers[t], simulation, steps) == own[t]);
        }

    /* Simulation 3 has 301 steps; trainer 1 has its even ones, which come in reverse. */
    mpidata_ledger *ledger = &ledgers[1];
    for (int64_t step = 300; step >= 2; step -= 2) {
        CHECK(!mpidata_ledger_has(ledger, 3, step));
        CHECK(!mpidata_ledger_enter(ledger, 3, step));
        CHECK(mpidata_ledger_has(ledger, 3, step) && !mpidata_ledger_has(ledger, 3, step - 2));
        CHECK(!mpidata_ledger_completed(ledger, 3));
    }
    CHECK(!mpidata_ledger_expect(ledger, 3, 301) && !mpidata_ledger_completed(ledger, 3));
    CHECK(!mpidata_ledger_enter(ledger, 3, 0));
    CHECK(mpidata_ledger_completed(ledger, 3) && !mpidata_ledger_completed(ledger, 3));
    CHECK(mpidata_ledger_has(ledger, 3, 300)); /* what comes again is known */

    CHECK(!mpidata_ledger_expect(ledger, 5, 2) && !mpidata_ledger_completed(ledger, 5));
    CHECK(mpidata_ledger_enter(ledger, 5, 4) == MPIDATA_ERR_WIRE);
    CHECK(!mpidata_ledger_expect(ledger, 6, 0) && mpidata_ledger_completed(ledger, 6));
    CHECK(!mpidata_ledger_enter(ledger, 7, 2) && !mpidata_ledger_enter(ledger, 7, 4));
    CHECK(mpidata_ledger_expect(ledger, 7, 2) == MPIDATA_ERR_WIRE);
    for (int t = 0; t < 2; t++) mpidata_ledger_close(&ledgers[t]);
    mpidata_plan_free(&plan);
    return 0;
}
