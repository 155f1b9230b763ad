/* Libraries that are preloaded into the program. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/run_files.h"
#include "process.h"
#include "rank.h"

#ifndef MPIDATA_ABORT_LIBRARY
#define MPIDATA_ABORT_LIBRARY "libmpidata_abort.so" /* seen from the folder of this program */
#endif

/* Add this value to a list in the environment. */
static void extend(const char *name, const char *value, int in_front)
{
    const char *old = getenv(name);
    char *both = !old || !*old ? print("%s", value) : in_front ? print("%s:%s", value, old) : print("%s:%s", old, value);
    if (setenv(name, both, 1)) refuse("Cannot set %s. Rank %ld. Give the job more memory.", name, me.rank);
}

/* Blanks and colons separate names in LD_PRELOAD. Returns a name without them: that of a link in the run folder, or NULL. */
static const char *without_blanks(const char *library)
{
    if (!strpbrk(library, ": ")) return library;
    char *link = print("%s/" MPIDATA_ABORT_LINK, me.run_folder);
    if (strpbrk(link, ": ")) return NULL;
    for (int again = 0; again < 2; again++) { /* at first, a link of an earlier start may lead to another installation */
        char *behind = symlink(library, link) && errno == EEXIST ? realpath(link, NULL) : NULL;
        const int is_this = !access(link, R_OK) && (!behind || !strcmp(behind, library));
        free(behind);
        if (is_this) return link;
        (void)unlink(link);
    }
    return NULL;
}

char *preload(void)
{
    char *folder = own_folder();
    if (!folder) return print("libmpidata_abort.so was not found, because there is no /proc");
    const int absolute = MPIDATA_ABORT_LIBRARY[0] == '/';
    char *path = print("%s%s" MPIDATA_ABORT_LIBRARY, absolute ? "" : folder, absolute ? "" : "/"), *real = realpath(path, NULL);
    if (!real) return print("%s is missing", path);
    const char *name = without_blanks(real);
    if (!name) return print("%s, whose path has a blank or a colon, as does the run folder's, cannot be preloaded", real);
    /* At the end of the list: a sanitizer's library must come first. */
    extend("LD_PRELOAD", name, 0);
    extend("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
    return NULL;
}
