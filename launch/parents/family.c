#define _GNU_SOURCE
#include "family.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "process.h"

void adopt_orphans(void) { (void)prctl(PR_SET_CHILD_SUBREAPER, 1); }

static int is_below(pid_t pid)
{
    for (int depth = 0; pid > 1 && depth < 64; depth++) {
        if (!state_of(pid, &pid)) return 0;
        if (pid == getpid()) return 1;
    }
    return 0;
}

/* The marks of kill_marked, which only one thread calls. */
static const char *marks[2];

/* Bits of the marks that a process has in its environment; -1: none of it can be read. */
static int marks_of(pid_t pid)
{
    char *variable = NULL;
    size_t room = 0;
    int found = -1;
    FILE *file = open_file_of(pid, "environ");
    while (file && getdelim(&variable, &room, 0, file) > 0) {
        if (found < 0) found = 0;
        for (int i = 0; i < 2; i++) found |= strcmp(variable, marks[i]) ? 0 : 1 << i;
    }
    free(variable);
    if (file) fclose(file);
    return found;
}

static int is_marked(pid_t pid)
{
    enum { LOOKS = 2000 }; /* half a second in all: an exec from a folder that hangs must not stop this process */
    int found = pid == getpid() ? 0 : marks_of(pid);
    for (int looks = 0; found < 0 && has_variables(pid) && looks < LOOKS; looks++) {
        usleep(200);
        found = marks_of(pid);
    }
    return found == 3;
}

/* Call `act` for each process that is meant; returns their number. */
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
