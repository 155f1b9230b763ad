/* Preloaded into all processes of a job. FORK_FAILS=name:number: in the process `name`, fork number `number` fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

pid_t fork(void)
{
    static pid_t (*next)(void);
    static int forks;
    const char *told = getenv("FORK_FAILS"), *colon = told ? strchr(told, ':') : NULL;
    if (colon && strlen(program_invocation_short_name) == (size_t)(colon - told)
        && !strncmp(told, program_invocation_short_name, (size_t)(colon - told)) && ++forks == atoi(colon + 1)) {
        errno = EAGAIN;
        return -1;
    }
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "fork");
    return next();
}
