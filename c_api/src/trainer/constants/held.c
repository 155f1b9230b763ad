#include "trainer/constants/held.h"

#include <string.h>

#include "stream/state.h"

int mpidata_trainer_constants_drawn(mpidata_try_constants **constants, int64_t *n) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    *n = trainer->drawn_with.n;
    for (int64_t i = 0; i < *n; i++) constants[i] = trainer->drawn_with.list[i];
    trainer->drawn_with.n = 0;
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_constants_find(int64_t simulation, mpidata_try_constants **constants) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    *constants = mpidata_constants_keep(mpidata_constants_of_simulation(&trainer->slots.constants, simulation));
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_constants_look(const mpidata_try_constants *constants, void **values, int64_t *numbers,
                                   int64_t *simulation,
                                   int64_t *by_try) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    const mpidata_plan *plan = &trainer->job.plan;
    for (int f = 0; f < plan->n_fields; f++) values[f] = constants->values[f];
    if (plan->n_numbers) memcpy(numbers, constants->parts.numbers, (size_t)plan->n_numbers * sizeof *numbers);
    *simulation = constants->simulation;
    *by_try = constants->by_try;
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_constants_release(mpidata_try_constants *constants) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    mpidata_constants_release(&trainer->slots.constants, constants);
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}
