/* Signs of life of a group for those of its ranks that wait, outside libmpidata, for one that waits for the trainers.
 *
 * A rank that waits for the trainers touches a file of its group periodically (c_api/src/job/job.c). It is in the run folder,
 * because a group may span several hosts; it is touched and read only after a long wait. Only a change of its time counts,
 * because the clocks of hosts differ. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rank.h"

/* When the file was last touched; makes a missing file, so that no host caches that it is missing. */
static uint64_t touched_at(void)
{
    static char *path;
    if (!path) {
        (void)mkdir(print("%s/" MPIDATA_RUN_WAITING, me.run_folder), 0755);
        path = print("%s/" MPIDATA_RUN_WAITING "/group-%ld", me.run_folder, me.index);
    }
    struct stat file;
    const int opened = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644); /* asks the file server again */
    if (opened < 0) return 0;
    const int known = fstat(opened, &file) == 0;
    close(opened);
    return known ? (uint64_t)file.st_mtim.tv_sec * SECOND + (uint64_t)file.st_mtim.tv_nsec : 0;
}

void look_for_mates(mates_t *mates, double silent_s, double allowed_s, uint64_t now)
{
    if (silent_s < allowed_s / 2) mates->touched = 0; /* earlier touches do not count */
    if (silent_s < allowed_s / 2 || (double)(now - mates->looked) < allowed_s / 8 * 1e9) return;
    mates->looked = now;
    const uint64_t touched = touched_at();
    if (mates->touched && touched != mates->touched) mates->waited = now;
    mates->touched = touched;
}
