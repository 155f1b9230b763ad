/* How much memory this process may still take: as the host and the limits of its control groups have it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "carrier.h"

/* A number in a file; -1: there is none, "max" say. */
static long long number_in(const char *folder, const char *name) {
    char path[4400];
    long long number = -1;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%lld", &number) != 1) number = -1;
    if (file) fclose(file);
    return number;
}

static long long available_on_host(void) {
    char line[256];
    long long kilobytes = -1;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && kilobytes < 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lld", &kilobytes) != 1) kilobytes = -1;
    if (file) fclose(file);
    return kilobytes < 0 ? -1 : kilobytes * 1024;
}

/* The least that any group above this process leaves. What files have cached there can be taken back. */
static long long available_in_groups(const char *root) {
    char line[4096], folder[4300];
    long long least = -1;
    FILE *file = fopen("/proc/self/cgroup", "re");
    *line = '\0';
    while (file && fgets(line, sizeof line, file) && strncmp(line, "0::", 3)) *line = '\0';
    if (file) fclose(file);
    if (strncmp(line, "0::/", 4)) return -1;
    line[strcspn(line, "\n")] = '\0';
    (void)snprintf(folder, sizeof folder, "%s%s", root, line + 3);
    for (char *end; strlen(folder) >= strlen(root); *end = '\0') {
        const long long most = number_in(folder, "memory.max"), taken = number_in(folder, "memory.current");
        if (most >= 0 && taken >= 0 && (least < 0 || most - taken < least)) least = most > taken ? most - taken : 0;
        if (!(end = strrchr(folder, '/'))) break;
    }
    return least;
}

int memory_check(const ranks_t *ranks) {
    /* All ranks together put each field once. */
    const double wanted = (double)ranks->slots * (double)ranks->plan->slot_bytes;
    const long long host = available_on_host(), groups = available_in_groups("/sys/fs/cgroup");
    const int limited = groups >= 0 && (host < 0 || groups < host);
    const long long available = limited ? groups : host;
    if (available < 0 || wanted <= (double)available) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_MEMORY, "A carried program and its carrier share memory for %u samples, %.1f GB, but %s "
                                             "%.1f GB. %s. Lower solvers.in_flight in the job file, or give the job more "
                                             "memory.", (unsigned)ranks->slots, wanted / 1e9,
                         limited ? "the limit of the job's control group leaves" : "this host has", (double)available / 1e9,
                         ranks->who);
}
