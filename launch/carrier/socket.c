/* Where the ranks of the program come in: a socket in a folder that only this user can enter. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "carrier.h"

static int cannot(const char *what, const char *path) {
    return mpidata_error(MPIDATA_ERR_JOB, "Cannot %s %.200s: %s. Set TMPDIR to a folder on this host that can be written.",
                         what, path, strerror(errno));
}

/* The same on all hosts, and another one for each run. */
static unsigned long long token_of(const char *run) {
    unsigned long long hash = 14695981039346656037ULL; /* FNV-1a */
    for (; *run; run++) hash = (hash ^ (unsigned char)*run) * 1099511628211ULL;
    return hash;
}

static int is_private(int folder) {
    struct stat status;
    return !fstat(folder, &status) && status.st_uid == geteuid() && (status.st_mode & 077) == 0;
}

/* Make the folder, or take that of another carrier of this run, and lock it, as those without a lock are removed by
 * `mpidata run`, maybe before it is locked here. */
static int take_folder(ranks_t *ranks) {
    for (int tries = 0; tries < 10; tries++) {
        struct stat here, there;
        if (mkdir(ranks->directory, 0700) && errno != EEXIST) return cannot("make the folder", ranks->directory);
        ranks->folder = open(ranks->directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (ranks->folder < 0 && errno != ENOENT) return cannot("open the folder", ranks->directory);
        if (ranks->folder < 0) continue;
        if (!is_private(ranks->folder))
            return mpidata_error(MPIDATA_ERR_JOB, "The folder %s belongs to another user, or is open to others. Remove it, or "
                                                  "set TMPDIR to another folder.", ranks->directory);
        if (!flock(ranks->folder, LOCK_SH | LOCK_NB) && !fstat(ranks->folder, &here) && !stat(ranks->directory, &there)
            && here.st_ino == there.st_ino) return MPIDATA_SUCCESS;
        close(ranks->folder);
        ranks->folder = -1;
        usleep(10000);
    }
    return cannot("lock the folder", ranks->directory);
}

static int bind_socket(ranks_t *ranks) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, ranks->path);
    ranks->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (ranks->listener < 0) return cannot("make the socket", ranks->path);
    if (unlink(ranks->path) && errno != ENOENT) return cannot("remove the old socket", ranks->path);
    if (bind(ranks->listener, (const struct sockaddr *)&address, sizeof address)) return cannot("make the socket", ranks->path);
    return listen(ranks->listener, SOMAXCONN) ? cannot("listen at", ranks->path) : MPIDATA_SUCCESS;
}

int socket_renew_token(ranks_t *ranks) {
    static const char digits[] = "0123456789abcdef";
    unsigned char random[MPIDATA_CARRIED_TOKEN - 1];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) return cannot("get random bytes for", ranks->path);
    memset(ranks->token, 0, sizeof ranks->token);
    for (size_t i = 0; i < sizeof random; i++) ranks->token[i] = digits[random[i] & 15];
    return MPIDATA_SUCCESS;
}

int socket_open(ranks_t *ranks, int group) {
    const char *parent = getenv("TMPDIR");
    if (!parent || *parent != '/') parent = "/tmp";
    ranks->listener = ranks->folder = -1;
    const int length = snprintf(ranks->directory, sizeof ranks->directory, "%s/mpidata-%u-%016llx", parent,
                                (unsigned)geteuid(), token_of(ranks->plan->run));
    const int whole = snprintf(ranks->path, sizeof ranks->path, "%.*s/group-%d", (int)sizeof ranks->directory - 1,
                               ranks->directory, group);
    if (length >= (int)sizeof ranks->directory || whole >= (int)sizeof ranks->path)
        return mpidata_error(MPIDATA_ERR_JOB, "TMPDIR is %.200s, which is too long for the name of a socket. Set it to a "
                                              "folder with a short name.", parent);
    MPIDATA_TRY(take_folder(ranks));
    MPIDATA_TRY(bind_socket(ranks));
    return socket_renew_token(ranks);
}

void socket_close(ranks_t *ranks) {
    if (ranks->listener >= 0) {
        close(ranks->listener);
        (void)unlink(ranks->path);
    }
    if (ranks->folder < 0) return;
    (void)rmdir(ranks->directory); /* the last one can */
    close(ranks->folder);
}
