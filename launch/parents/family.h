/* The processes that this one has started, with those that these have started. */
#ifndef MPIDATA_FAMILY_H
#define MPIDATA_FAMILY_H

#include <sys/types.h>

/* Orphans among them come to this process, not to init, so that they are found. */
void adopt_orphans(void);

/* Kill all of them; returns how many there were, zombies too. */
int kill_family(void);

/* Kill the processes on this host, children of foreign daemons too, that have both variables, "NAME=value", in their
 * environment; returns how many there were. */
int kill_marked(const char *variable, const char *other);

int is_stopped(pid_t pid); /* by SIGSTOP, say, not by a debugger */

/* Let go on those that were stopped, by SIGSTOP say, but not by a debugger: who has done his work must not hold up others. */
void continue_if_stopped(pid_t pid);
void continue_family(void);

#endif
