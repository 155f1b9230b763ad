/* Whether there is the memory that the carrier shares with its program. */
#include "carrier.h"
#include "system/available_memory.h"

/* Of a sample, and of constants, which are in any of the slots. How long those with lengths will be is not known. */
static double sample_bytes(const mpidata_plan *plan) {
    double bytes = (double)plan->slot_bytes;
    for (int f = 0; f < plan->n_fields; f++) {
        const mpidata_field *field = &plan->fields[f];
        if (field->per_simulation && field->varying < 0) bytes += (double)field->row * (double)field->element_size;
    }
    return bytes;
}

int memory_check(const ranks_t *ranks) {
    /* All ranks together put each field once. */
    const double wanted = (double)ranks->slots * sample_bytes(ranks->plan);
    int limited;
    const int64_t available = mpidata_available_memory("/proc", "/sys/fs/cgroup", &limited);
    if (available < 0 || wanted <= (double)available) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_MEMORY, "A carried program and its carrier share memory for %u samples, %.1f GB, but %s "
                                             "%.1f GB. %s. Lower solvers.in_flight in the job file, or give the job more "
                                             "memory.", (unsigned)ranks->slots, wanted / 1e9,
                         limited ? "the limit of the job's control group leaves" : "this host has", (double)available / 1e9,
                         ranks->who);
}
