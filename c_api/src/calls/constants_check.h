/* Checks of fields that are put once per simulation. */
#ifndef MPIDATA_CONSTANTS_CHECK_H
#define MPIDATA_CONSTANTS_CHECK_H

#include "wire/wire.h"

#define MPIDATA_PUT_CONSTANTS \
    "Put a field with 'per: simulation' after mpidata_next and before the first mpidata_step; the blocks of all " \
    "ranks cover it once."

/* After the first step: refuse a constant. On an error *advice says what to do. */
int mpidata_constant_check(const mpidata_field *field, const char **advice);

/* The counts of a step together with those of the constants, which are in the counts of step 0. constants: mpidata_plan_counts
 * numbers, followed by as many for the returned counts. */
const int64_t *mpidata_counts_with_constants(const mpidata_plan *plan, const int64_t *counts, int64_t step,
                                             int64_t *constants);

#endif
