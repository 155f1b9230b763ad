/* The plan names the programs to run, so it is read only if no other user can have written it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rank.h"

static int open_own(int folder, const char *name, const char *path, int flags)
{
    struct stat found;
    const int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags);
    if (file < 0 || fstat(file, &found))
        refuse("Cannot read %s: %s. Start the job with `mpidata run`.", path, strerror(errno));
    if (found.st_uid != geteuid())
        refuse("%s belongs to user %ld, not to user %ld, so mpidata does not read it. Start the job with `mpidata run`; on a"
               " file system that maps owners, set 'output' to a folder on another.", path, (long)found.st_uid,
               (long)geteuid());
    if (found.st_mode & (S_IWGRP | S_IWOTH))
        refuse("%s can be written by others, so mpidata does not read it. If nobody has changed it, `chmod go-w %s`.", path,
               path);
    return file;
}

FILE *open_plan(const char *path)
{
    const int folder = open_own(AT_FDCWD, me.run_folder, me.run_folder, O_DIRECTORY);
    const int private = open_own(folder, "private", path, O_DIRECTORY);
    FILE *file = fdopen(open_own(private, "plan", path, 0), "r");
    if (!file) refuse("Cannot read %s: %s. Give the job more memory.", path, strerror(errno));
    close(private);
    close(folder);
    return file;
}
