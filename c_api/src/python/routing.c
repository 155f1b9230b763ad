#include "python/routing.h"

#include "wire/plan.h"

void mpidata_routing_trainers(int trainers, int run, const int64_t *simulation, const int64_t *step, int64_t *trainer,
                              int64_t count) {
    const mpidata_plan plan = {.trainers = trainers, .samples_run = run};
    const int64_t round = (int64_t)run * trainers; /* a damaged file may have numbers of any size */
    for (int64_t i = 0; i < count; i++)
        trainer[i] = mpidata_plan_trainer(&plan, simulation[i] % trainers, step[i] % round);
}

int64_t mpidata_routing_own(int trainers, int run, int trainer, int64_t simulation, int64_t steps) {
    const mpidata_plan plan = {.trainers = trainers, .samples_run = run};
    return mpidata_plan_own(&plan, trainer, simulation, steps);
}

void mpidata_routing_steps(int trainers, int run, int trainer, int64_t simulation, int64_t *numbers, int64_t count) {
    const mpidata_plan plan = {.trainers = trainers, .samples_run = run};
    for (int64_t i = 0; i < count; i++) numbers[i] = mpidata_plan_step(&plan, trainer, simulation, numbers[i]);
}
