#include "job/usage.h"

#include <sys/resource.h>

static int64_t microseconds(struct timeval time) { return (int64_t)time.tv_sec * 1000000 + (int64_t)time.tv_usec; }

mpidata_usage mpidata_usage_now(void) {
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used)) return (mpidata_usage){0};
    return (mpidata_usage){.memory_kb = (int64_t)used.ru_maxrss,
                           .cpu_us = microseconds(used.ru_utime) + microseconds(used.ru_stime)};
}
