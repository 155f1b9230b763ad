/* The trainer of each sample, for Python, which has no mpidata_plan: `trainers` and `run` are its trainers and samples_run.
 * plan.h has the formulas. */
#ifndef MPIDATA_ROUTING_H
#define MPIDATA_ROUTING_H

#include <stdint.h>

/* Trainer of each of `count` samples, by the step at which it begins. No number is negative. */
void mpidata_routing_trainers(int trainers, int run, const int64_t *simulation, const int64_t *step, int64_t *trainer,
                              int64_t count);

/* As mpidata_plan_own. */
int64_t mpidata_routing_own(int trainers, int run, int trainer, int64_t simulation, int64_t steps);

/* As mpidata_plan_step, for `count` numbers, which are replaced by steps. */
void mpidata_routing_steps(int trainers, int run, int trainer, int64_t simulation, int64_t *numbers, int64_t count);

#endif
