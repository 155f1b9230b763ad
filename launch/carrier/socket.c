/* Where the ranks of the program connect: a socket in a folder that only this user can enter. It, and a similar one in
 * /dev/shm, also contain a folder for files of the program's own MPI, so that they can be removed if it is killed. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
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
#include "family.h"
#include "job/run_files.h"

static int cannot(const char *what, const char *path) {
    return mpidata_error(MPIDATA_ERR_JOB, "Cannot %s %.200s: %s. Set TMPDIR to a folder on this host that can be written.",
                         what, path, strerror(errno));
}

/* The same on all hosts, but different for each run. */
static unsigned long long token_of(const char *run) {
    unsigned long long hash = 14695981039346656037ULL; /* FNV-1a */
    for (; *run; run++) hash = (hash ^ (unsigned char)*run) * 1099511628211ULL;
    return hash;
}

static int is_private(int folder) {
    struct stat status;
    return !fstat(folder, &status) && status.st_uid == geteuid() && (status.st_mode & 077) == 0;
}

/* Make the folder, or take that of another carrier of this run, and lock it: `mpidata run` removes folders without a lock,
 * perhaps before it is locked here. */
static int take_folder(const char *path, int *folder) {
    for (int tries = 0; tries < 10; tries++) {
        struct stat here, there;
        if (mkdir(path, 0700) && errno != EEXIST) return cannot("make the folder", path);
        *folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (*folder < 0 && errno != ENOENT) return cannot("open the folder", path);
        if (*folder < 0) continue;
        if (!is_private(*folder))
            return mpidata_error(MPIDATA_ERR_JOB, "The folder %s belongs to another user, or is open to others. Remove it, or "
                                                  "set TMPDIR to another folder.", path);
        if (!flock(*folder, LOCK_SH | LOCK_NB) && !fstat(*folder, &here) && !stat(path, &there)
            && here.st_ino == there.st_ino) return MPIDATA_SUCCESS;
        close(*folder);
        *folder = -1;
        usleep(10000);
    }
    return cannot("lock the folder", path);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)status, (void)type, (void)place;
    (void)remove(path);
    return 0;
}

void socket_clean(const ranks_t *ranks) {
    for (int i = 0; i < 2; i++) {
        if (!*ranks->scratch[i]) continue;
        (void)nftw(ranks->scratch[i], remove_one, 8, FTW_DEPTH | FTW_PHYS);
        (void)mkdir(ranks->scratch[i], 0700);
    }
}

/* A file beside the socket that this process keeps locked while it lives. It is empty until the program of a dead carrier
 * was ended. If an earlier carrier of the group has not ended yet, this one works without the file. */
static int hold(ranks_t *ranks) {
    enum { TRIES = 100 };
    char path[sizeof ranks->path + 8];
    (void)snprintf(path, sizeof path, "%s.held", ranks->path);
    ranks->held = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (ranks->held < 0) return cannot("make the file", path);
    for (int i = 0; i < TRIES; i++) {
        if (!flock(ranks->held, LOCK_EX | LOCK_NB)) return ftruncate(ranks->held, 0) ? cannot("empty", path) : MPIDATA_SUCCESS;
        usleep(10000);
    }
    return MPIDATA_SUCCESS;
}

static void end_program_of_dead(const ranks_t *ranks, const char *name, int group) {
    enum { TRIES = 400 }; /* a process that waits for a disk may be unkillable for long */
    char mark[sizeof ranks->group_mark];
    struct stat status;
    const int file = openat(ranks->folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return;
    if (!flock(file, LOCK_EX | LOCK_NB) && !fstat(file, &status) && !status.st_size) {
        (void)snprintf(mark, sizeof mark, MPIDATA_CARRIED_GROUP "=%d", group);
        for (int tries = 0; tries < TRIES && kill_marked(ranks->mark, mark); tries++) usleep(5000);
        (void)ftruncate(file, 1);
    }
    close(file);
}

void socket_sweep(const ranks_t *ranks) {
    DIR *folder = opendir(ranks->directory);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        int group, end = 0;
        if (sscanf(entry->d_name, "group-%d.held%n", &group, &end) == 1 && end && !entry->d_name[end])
            end_program_of_dead(ranks, entry->d_name, group);
    }
    if (folder) closedir(folder);
}

/* A folder in memory for segments that ranks share; without one, the MPI uses its default. */
static void take_memory(ranks_t *ranks, const char *name, const char *own) {
    char path[sizeof ranks->directory];
    (void)snprintf(path, sizeof path, "/dev/shm/%s", name);
    if (access("/dev/shm", W_OK) || take_folder(path, &ranks->memory)) return;
    (void)snprintf(ranks->scratch[1], sizeof ranks->scratch[1], "%.64s/g%s", path, own);
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

int socket_open(ranks_t *ranks, int group, int index) {
    const char *parent = getenv("TMPDIR");
    char name[64], own[32];
    if (!parent || *parent != '/') parent = "/tmp";
    ranks->listener = ranks->folder = ranks->memory = ranks->held = -1;
    (void)snprintf(name, sizeof name, "mpidata-%u-%016llx", (unsigned)geteuid(), token_of(ranks->plan->run));
    const int length = snprintf(ranks->directory, sizeof ranks->directory, "%s/%s", parent, name);
    (void)snprintf(own, sizeof own, index ? "%d.%d" : "%d", group, index); /* also in ranks.c */
    const int whole = snprintf(ranks->path, sizeof ranks->path, "%.*s/group-%s", (int)sizeof ranks->directory - 1,
                               ranks->directory, own);
    if (length >= (int)sizeof ranks->directory || whole >= (int)sizeof ranks->path)
        return mpidata_error(MPIDATA_ERR_JOB, "TMPDIR is %.200s, which is too long for the name of a socket. Set it to a "
                                              "folder with a short name.", parent);
    MPIDATA_TRY(take_folder(ranks->directory, &ranks->folder));
    (void)snprintf(ranks->scratch[0], sizeof ranks->scratch[0], "%.96s/g%s", ranks->directory, own);
    take_memory(ranks, name, own);
    MPIDATA_TRY(hold(ranks));
    socket_clean(ranks);
    return bind_socket(ranks);
}

void socket_close(ranks_t *ranks) {
    if (ranks->listener >= 0) {
        close(ranks->listener);
        (void)unlink(ranks->path);
    }
    if (ranks->held >= 0) {
        char path[sizeof ranks->path + 8];
        (void)snprintf(path, sizeof path, "%s.held", ranks->path);
        (void)unlink(path);
    }
    socket_clean(ranks);
    for (int i = 0; i < 2; i++) { /* the last one of this host can remove the folders */
        if (!*ranks->scratch[i]) continue;
        (void)rmdir(ranks->scratch[i]);
        *strrchr(ranks->scratch[i], '/') = '\0';
        (void)rmdir(ranks->scratch[i]);
    }
    if (ranks->held >= 0) close(ranks->held);
    if (ranks->folder >= 0) close(ranks->folder);
    if (ranks->memory >= 0) close(ranks->memory);
}
