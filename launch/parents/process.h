/* What /proc says of a process. */
#ifndef MPIDATA_PROCESS_H
#define MPIDATA_PROCESS_H

#include <stdio.h>
#include <sys/types.h>

FILE *open_file_of(pid_t pid, const char *name); /* "environ" say; NULL: there is none, or this process may not read it */

/* Its state, 'T' where it was stopped by a signal, and its parent; 0 where there is no such process. */
char state_of(pid_t pid, pid_t *parent);

char *own_folder(void); /* that the program of this process lies in, to be freed; NULL: it is not known */

#endif
