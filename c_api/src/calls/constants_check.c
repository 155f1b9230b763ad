#include "calls/constants_check.h"

#include <string.h>

int mpidata_constant_check(const mpidata_field *field, const char **advice) {
    if (!field->per_simulation) return MPIDATA_SUCCESS;
    *advice = "Put it after mpidata_next and before the first mpidata_step, or remove 'per' from the field in the job "
              "file.";
    return mpidata_error(MPIDATA_ERR_ORDER, "Field '%s' is put once per simulation, but was put after its first step",
                         field->name);
}

const int64_t *mpidata_counts_with_constants(const mpidata_plan *plan, const int64_t *counts, int64_t step,
                                             int64_t *constants) {
    const int n = mpidata_plan_counts(plan);
    if (!step) memcpy(constants, counts, (size_t)n * sizeof *counts);
    if (!step) return counts;
    memcpy(constants + n, counts, (size_t)n * sizeof *counts);
    for (int i = 0; i < n; i++)
        if (plan->fields[i % plan->n_fields].per_simulation) constants[n + i] = constants[i];
    return constants + n;
}
