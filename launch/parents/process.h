/* Information on a process from /proc. */
#ifndef MPIDATA_PROCESS_H
#define MPIDATA_PROCESS_H

#include <stdio.h>
#include <sys/types.h>

FILE *open_file_of(pid_t pid, const char *name); /* such as "environ"; NULL: there is none, or this process may not read it */

/* Its state, 'T' if a signal has stopped it, and its parent; 0 if there is no such process. */
char state_of(pid_t pid, pid_t *parent);

/* Whether it has environment variables, or will once its exec is complete, until which none can be read. */
int has_variables(pid_t pid);

char *own_folder(void); /* folder of this process's program, to be freed; NULL: unknown */

#endif
