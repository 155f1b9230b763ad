/* Finds ranks that ended without an exit note, because they were killed together with their mpidata-rank or with their
 * host. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rank.h"

static int folder = -1;
static const char *own; /* name of this rank's file */

void show_alive(void)
{
    const char *path = print("%s/" MPIDATA_RUN_ALIVE, me.run_folder), *new = print(".%s", file_name(0));
    own = file_name(0);
    (void)mkdir(path, 0755);
    folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int file = folder < 0 ? -1 : openat(folder, new, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0) return;
    /* It stays open. If the file system has no locks, the loss of this rank is not found in this way. */
    if (flock(file, LOCK_EX | LOCK_NB) || renameat(folder, new, folder, own)) (void)unlinkat(folder, new, 0);
}

void end_alive(void)
{
    if (folder >= 0) (void)unlinkat(folder, own, 0);
}

/* Whether the file exists and is no longer locked. */
static int is_left(const char *name)
{
    struct stat status;
    const int file = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    const int left = file >= 0 && !flock(file, LOCK_EX | LOCK_NB) && !fstat(file, &status) && status.st_nlink > 0;
    if (file >= 0) close(file);
    return left;
}

int note_vanished(void)
{
    int found = 0;
    const int again = folder < 0 ? -1 : openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *all = again < 0 ? NULL : fdopendir(again);
    for (struct dirent *entry; all && (entry = readdir(all));) {
        if (*entry->d_name == '.' || !strcmp(entry->d_name, own) || !is_left(entry->d_name)) continue;
        const int note = openat(folder, print("../../" MPIDATA_RUN_EXITS "/" MPIDATA_VANISHED "%s", entry->d_name),
                                O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (note >= 0) close(note);
        found++;
    }
    if (all) closedir(all);
    else if (again >= 0) close(again);
    return found;
}
