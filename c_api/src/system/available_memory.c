#define _GNU_SOURCE
#include "system/available_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A version of control groups: the place of its files below the common folder, and their names. */
typedef struct {
    const char *root, *most, *taken, *cached;
} version;

static const version VERSION_1 = {"/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
                     VERSION_2 = {"", "memory.max", "memory.current", "inactive_file"};

/* The number after a key in a file, or at its start if key is ""; -1: there is none, for example "max". */
static int64_t number_in(const char *folder, const char *name, const char *key) {
    char path[8600], line[256];
    long long number = -1;
    const size_t length = strlen(key);
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, length) || (length && line[length] != ' ' && line[length] != ':')) continue;
        if (sscanf(line + length + (line[length] == ':'), "%lld", &number) != 1) number = -1;
        break;
    }
    if (file) fclose(file);
    return number;
}

static int64_t available_on_host(const char *proc) {
    const int64_t kilobytes = number_in(proc, "meminfo", "MemAvailable");
    return kilobytes < 0 ? -1 : kilobytes * 1024;
}

/* The least memory left by the group at `path` and those above it; file cache counts as free. -1: no group has a limit. */
static int64_t left_above(const char *all, const version *of, const char *path) {
    char folder[8500];
    int64_t least = -1;
    const size_t root = strlen(all) + strlen(of->root);
    if (snprintf(folder, sizeof folder, "%s%s%s", all, of->root, path) >= (int)sizeof folder) return -1;
    for (;;) {
        const int64_t most = number_in(folder, of->most, ""), taken = number_in(folder, of->taken, "");
        const int64_t cached = number_in(folder, "memory.stat", of->cached), used = taken - (cached > 0 ? cached : 0);
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
static int64_t available_in_groups(const char *proc, const char *all) {
    char name[4200], *line = NULL;
    size_t room = 0;
    int64_t least = -1;
    (void)snprintf(name, sizeof name, "%s/self/cgroup", proc);
    FILE *file = fopen(name, "re");
    while (file && getline(&line, &room, file) > 0) {
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(++controllers, ':') : NULL;
        if (!path) continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        const version *of = !*controllers ? &VERSION_2 : has_memory(controllers) ? &VERSION_1 : NULL;
        const int64_t left = of ? left_above(all, of, path) : -1;
        if (left >= 0 && (least < 0 || left < least)) least = left;
    }
    free(line);
    if (file) fclose(file);
    return least;
}

int64_t mpidata_available_memory(const char *proc, const char *cgroup, int *limited) {
    const int64_t host = available_on_host(proc), groups = available_in_groups(proc, cgroup);
    const int less = groups >= 0 && (host < 0 || groups < host);
    if (limited) *limited = less;
    return less ? groups : host;
}
