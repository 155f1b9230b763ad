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

/* Of kill_marked, which one thread calls. */
static const char *marks[2];

/* Whether a process has both in its environment, as far as this one may look. */
static int is_marked(pid_t pid)
{
    char path[64], *variable = NULL;
    size_t room = 0;
    int found = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *file = pid == getpid() ? NULL : fopen(path, "re");
    while (file && getdelim(&variable, &room, 0, file) > 0)
        for (int i = 0; i < 2; i++) found |= strcmp(variable, marks[i]) ? 0 : 1 << i;
    free(variable);
    if (file) fclose(file);
    return found == 3;
}

/* Do it with all; returns how many there were. */
static int for_all(int (*is_meant)(pid_t), void (*act)(pid_t))
{
    int found = 0;
    DIR *processes = opendir("/proc");
    for (struct dirent *entry; processes && (entry = readdir(processes));) {
        const pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid <= 0 || !is_meant(pid)) continue;
        found++;
        act(pid);
    }
    if (processes) closedir(processes);
    return found;
}

static void end(pid_t pid) { (void)kill(pid, SIGKILL); }

int kill_family(void) { return for_all(is_below, end); }

int kill_marked(const char *variable, const char *other)
{
    marks[0] = variable;
    marks[1] = other;
    return for_all(is_marked, end);
}

int is_stopped(pid_t pid)
{
    pid_t parent;
    return state_of(pid, &parent) == 'T';
}

void continue_if_stopped(pid_t pid)
{
    if (is_stopped(pid)) (void)kill(pid, SIGCONT);
}

void continue_family(void) { (void)for_all(is_below, continue_if_stopped); }
