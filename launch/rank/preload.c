/* What is preloaded into the program. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rank.h"

#ifndef MPIDATA_ABORT_LIBRARY
#define MPIDATA_ABORT_LIBRARY "libmpidata_abort.so" /* seen from the folder of this program */
#endif

static char *own_folder(void)
{
    char path[PATH_MAX + 1];
    const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    if (length <= 0) return NULL;
    path[length] = 0;
    *strrchr(path, '/') = 0;
    return print("%s", path);
}

/* Set a list in the environment to this value and what is there already. */
static void extend(const char *name, const char *value, int in_front)
{
    const char *old = getenv(name);
    char *both = !old || !*old ? print("%s", value) : in_front ? print("%s:%s", value, old) : print("%s:%s", old, value);
    if (setenv(name, both, 1)) refuse("Cannot set %s. Rank %ld. Give the job more memory.", name, me.rank);
}

char *preload(void)
{
    char *folder = own_folder();
    if (!folder) return print("libmpidata_abort.so was not found, as /proc is not there");
    char *path = print("%s/" MPIDATA_ABORT_LIBRARY, folder), *real = realpath(path, NULL);
    if (!real) return print("%s is missing", path);
    if (strpbrk(real, ": ")) return print("%s, whose path has a blank or a colon, cannot be preloaded", real);
    /* Behind what is there: a sanitizer's library must come first, or, where the program brings it, not mind. */
    extend("LD_PRELOAD", real, 0);
    extend("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
    return NULL;
}
