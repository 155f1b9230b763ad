/* All descendants of this process. */
#ifndef MPIDATA_FAMILY_H
#define MPIDATA_FAMILY_H

#include <sys/types.h>

/* Let their orphans become children of this process, not of init, so that they are found. */
void adopt_orphans(void);

/* Kill all of them; returns their number, including zombies. */
int kill_family(void);

/* Kill the processes on this host, also children of foreign daemons, that have both variables, "NAME=value", in their
 * environment; returns their number. */
int kill_marked(const char *variable, const char *other);

int is_stopped(pid_t pid); /* by a signal such as SIGSTOP, not by a debugger */

/* Continue a process that a signal such as SIGSTOP has stopped, not a debugger: after its work it must not delay others. */
void continue_if_stopped(pid_t pid);
void continue_family(void);

#endif
