/* How much memory this process may still take: as the host and the limits of its control groups have it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "carrier.h"

/* Of a version of control groups: where its files are, below /sys/fs/cgroup, and what they are called. */
typedef struct {
    const char *root, *most, *taken, *cached;
} version_t;

static const version_t VERSION_1 = {"/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
                       VERSION_2 = {"", "memory.max", "memory.current", "inactive_file"};

/* The number behind a key in a file, or with which it begins where key is ""; -1: there is none, "max" say. */
static long long number_in(const char *folder, const char *name, const char *key) {
    char path[4400], line[256];
    long long number = -1;
    const size_t length = strlen(key);
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, length) || (length && line[length] != ' ')) continue;
        if (sscanf(line + length, "%lld", &number) != 1) number = -1;
        break;
    }
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

/* The least that the group at `path`, or one above it, leaves; what files have cached there gives way. -1: no group does. */
static long long left_above(const version_t *version, const char *path) {
    char folder[4300];
    long long least = -1;
    const int root = snprintf(folder, sizeof folder, "/sys/fs/cgroup%s", version->root);
    (void)snprintf(folder + root, sizeof folder - (size_t)root, "%s", path);
    for (;;) {
        const long long most = number_in(folder, version->most, ""), taken = number_in(folder, version->taken, "");
        const long long cached = number_in(folder, "memory.stat", version->cached);
        const long long used = taken - (cached > 0 ? cached : 0);
        if (most >= 0 && taken >= 0 && (least < 0 || most - used < least)) least = most > used ? most - used : 0;
        char *end = strrchr(folder + root, '/');
        if (!end) return least;
        *end = '\0';
    }
}

/* Whether "memory" is among controllers, "cpu,memory". */
static int has_memory(const char *controllers) {
    for (const char *at = controllers; (at = strstr(at, "memory")); at++)
        if ((at == controllers || at[-1] == ',') && (at[6] == ',' || !at[6])) return 1;
    return 0;
}

/* Lines of /proc/self/cgroup: "4:memory:/job", "0::/job". */
static long long available_in_groups(void) {
    char line[4200];
    long long least = -1;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof line, file)) {
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(++controllers, ':') : NULL;
        if (!path) continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        const version_t *version = !*controllers ? &VERSION_2 : has_memory(controllers) ? &VERSION_1 : NULL;
        const long long left = version ? left_above(version, path) : -1;
        if (left >= 0 && (least < 0 || left < least)) least = left;
    }
    if (file) fclose(file);
    return least;
}

int memory_check(const ranks_t *ranks) {
    /* All ranks together put each field once. */
    const double wanted = (double)ranks->slots * (double)ranks->plan->slot_bytes;
    const long long host = available_on_host(), groups = available_in_groups();
    const int limited = groups >= 0 && (host < 0 || groups < host);
    const long long available = limited ? groups : host;
    if (available < 0 || wanted <= (double)available) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_MEMORY, "A carried program and its carrier share memory for %u samples, %.1f GB, but %s "
                                             "%.1f GB. %s. Lower solvers.in_flight in the job file, or give the job more "
                                             "memory.", (unsigned)ranks->slots, wanted / 1e9,
                         limited ? "the limit of the job's control group leaves" : "this host has", (double)available / 1e9,
                         ranks->who);
}
