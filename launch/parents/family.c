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

/* A process's state, as in /proc: 'T' where it was stopped, and its parent; 0 where there is no such process. */
static char state_of(pid_t pid, pid_t *parent)
{
    char path[64], text[512], state;
    int number;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    const size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    const char *end = strrchr(text, ')'); /* of the name, which may hold anything */
    if (!end || sscanf(end + 1, " %c %d", &state, &number) != 2) return 0;
    *parent = number;
    return state;
}

static int is_below(pid_t pid)
{
    for (int depth = 0; pid > 1 && depth < 64; depth++) {
        if (!state_of(pid, &pid)) return 0;
        if (pid == getpid()) return 1;
    }
    return 0;
}

/* Do it with all; returns how many there were. */
static int for_family(void (*act)(pid_t))
{
    int found = 0;
    DIR *processes = opendir("/proc");
    for (struct dirent *entry; processes && (entry = readdir(processes));) {
        const pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid <= 0 || !is_below(pid)) continue;
        found++;
        act(pid);
    }
    if (processes) closedir(processes);
    return found;
}

static void end(pid_t pid) { (void)kill(pid, SIGKILL); }

int kill_family(void) { return for_family(end); }

void continue_if_stopped(pid_t pid)
{
    pid_t parent;
    if (state_of(pid, &parent) == 'T') (void)kill(pid, SIGCONT);
}

void continue_family(void) { (void)for_family(continue_if_stopped); }
