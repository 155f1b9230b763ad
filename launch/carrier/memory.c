/* Whether there is the memory that the carrier shares with its program. */
#include "carrier.h"
#include "system/available_memory.h"

int memory_check(const ranks_t *ranks) {
    /* All ranks together put each field once, and constants are in any of the slots. */
    const double wanted = (double)ranks->slots * (double)ranks->sample_bytes;
    int limited;
    const int64_t available = mpidata_available_memory("/proc", "/sys/fs/cgroup", &limited);
    if (available < 0 || wanted <= (double)available) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_MEMORY, "A carried program and its carrier share memory for %u samples, %.1f GB, but %s "
                                             "%.1f GB. %s. Lower solvers.in_flight, or at_most of the lengths, in the job "
                                             "file, or give the job more memory.", (unsigned)ranks->slots, wanted / 1e9,
                         limited ? "the limit of the job's control group leaves" : "this host has", (double)available / 1e9,
                         ranks->who);
}
