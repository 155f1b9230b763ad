#define _GNU_SOURCE
#include "family.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

void adopt_orphans(void) { (void)prctl(PR_SET_CHILD_SUBREAPER, 1); }

static pid_t parent_of(pid_t pid)
{
    char path[64], text[512], state;
    int parent = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    const size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    const char *end = strrchr(text, ')'); /* of the name, which may hold anything */
    return end && sscanf(end + 1, " %c %d", &state, &parent) == 2 ? (pid_t)parent : 0;
}

static int is_below(pid_t pid)
{
    for (int depth = 0; pid > 1 && depth < 64; depth++)
        if ((pid = parent_of(pid)) == getpid()) return 1;
    return 0;
}

int kill_family(void)
{
    int found = 0;
    DIR *processes = opendir("/proc");
    for (struct dirent *entry; processes && (entry = readdir(processes));) {
        const pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid <= 0 || !is_below(pid)) continue;
        found++;
        kill(pid, SIGKILL);
    }
    if (processes) closedir(processes);
    return found;
}
