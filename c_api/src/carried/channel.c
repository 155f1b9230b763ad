#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "carried/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { YIELDS = 4, LOOK_EVERY_MS = 500 };

static int gone(void) {
    return mpidata_error(MPIDATA_ERR_JOB, "The carrier of this program, a rank of the job, has ended, and with it the "
                                          "program's part in the job. End the program: the job restarts it if necessary.");
}

static int closed_here(void) {
    return mpidata_error(MPIDATA_ERR_JOB, "This process has closed the connection to its carrier. Close no file descriptors "
                                          "that the program has not opened itself, or do it before mpidata_attach.");
}

static int cannot(const char *what, const char *where) {
    return mpidata_error(MPIDATA_ERR_JOB, "mpidata_attach: cannot %s %.200s: %s. Let the job start the program: mpidata run "
                                          "job.yaml.", what, where, strerror(errno));
}

static int connect_to(const char *path, int *connection) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int failed, status = MPIDATA_SUCCESS;
    if (strlen(path) >= sizeof address.sun_path)
        return mpidata_error(MPIDATA_ERR_JOB, "mpidata_attach: the path %.200s is too long for a socket. Set TMPDIR to a "
                                              "folder with a short name.", path);
    strcpy(address.sun_path, path);
    int low = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    /* Not as 0, 1 or 2, if the program has closed those: its output would go to the carrier. */
    *connection = low < 0 || low > STDERR_FILENO ? low : fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (*connection < 0) status = cannot("make a socket for", path);
    if (low >= 0 && low != *connection) (void)close(low);
    MPIDATA_TRY(status);
    do failed = connect(*connection, (const struct sockaddr *)&address, sizeof address);
    while (failed && errno == EINTR); /* because of a signal handler of the program */
    return failed ? cannot("connect to", path) : MPIDATA_SUCCESS;
}

/* Receive a message of the carrier, and in *memory the descriptor with it, or -1. Returns as recv. */
static ssize_t receive_with(int connection, void *data, size_t bytes, int flags, int *memory) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = data, .iov_len = bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t got;
    do got = recvmsg(connection, &message, MSG_CMSG_CLOEXEC | flags);
    while (got < 0 && errno == EINTR);
    *memory = -1;
    const struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(memory, CMSG_DATA(head), sizeof *memory);
    return got;
}

/* Receive the carrier's first message, and the memory with it. */
static int take_welcome(int connection, mpidata_carried_welcome *welcome, int *memory) {
    const ssize_t got = receive_with(connection, welcome, sizeof *welcome, 0, memory);
    if (got <= 0) return gone();
    if (got != (ssize_t)sizeof *welcome || welcome->magic != MPIDATA_CARRIED_MAGIC ||
        welcome->version != MPIDATA_CARRIED_VERSION)
        return mpidata_error(MPIDATA_ERR_JOB, "mpidata_attach: the carrier is of another version of mpidata. Link the program "
                                              "with the library that `mpidata config --carried` names.");
    welcome->sentence[sizeof welcome->sentence - 1] = '\0';
    if (welcome->refused == MPIDATA_CARRIED_REFUSED)
        return mpidata_error(MPIDATA_ERR_JOB, "mpidata_attach: %s", welcome->sentence);
    return MPIDATA_SUCCESS;
}

static int within(uint64_t at, uint64_t bytes, uint64_t all) { return at % 8 == 0 && at <= all && bytes <= all - at; }

static int check_memory(mpidata_channel *channel, uint64_t bytes) {
    const mpidata_carried *head = channel->shared;
    uint64_t plan_at = head->plan_at, plan_bytes = head->plan_bytes, parameters_at = head->parameters_at;
    channel->slots_at = head->slots_at;
    channel->slot_bytes = head->slot_bytes;
    channel->values_at = head->values_at;
    channel->values_bytes = head->values_bytes;
    channel->slots = head->slots;
    channel->blocks = head->blocks;
    channel->bytes = bytes;
    if (head->magic != MPIDATA_CARRIED_MAGIC || head->version != MPIDATA_CARRIED_VERSION || head->bytes != bytes ||
        !plan_bytes || !within(plan_at, plan_bytes, bytes) || !within(parameters_at, 0, bytes) || !channel->slots ||
        channel->slot_bytes > bytes || channel->slots > bytes / (channel->slot_bytes | 1) ||
        !within(channel->slots_at, channel->slots * channel->slot_bytes, bytes) ||
        !within(channel->values_at, channel->values_bytes, channel->slot_bytes) ||
        channel->blocks > MPIDATA_BLOCKS_MAX ||
        sizeof(mpidata_carried_sample) + channel->blocks * sizeof(mpidata_carried_block) > channel->values_at)
        return mpidata_error(MPIDATA_ERR_JOB, "mpidata_attach: the carrier's memory does not have the announced contents. "
                                              "Use one version of mpidata.");
    const char *base = (const char *)channel->shared;
    if (base[plan_at + plan_bytes - 1])
        return mpidata_error(MPIDATA_ERR_JOB, "mpidata_attach: the plan in the carrier's memory has no end. Use one version "
                                              "of mpidata.");
    channel->plan_text = base + plan_at;
    channel->parameters = (const double *)(base + parameters_at);
    return MPIDATA_SUCCESS;
}

static int map_memory(mpidata_channel *channel, const mpidata_carried_welcome *welcome, int memory) {
    struct stat status;
    uint64_t bytes = welcome->bytes;
    if (memory < 0)
        return mpidata_error(MPIDATA_ERR_JOB, "mpidata_attach: the carrier's memory has not come with its message, as happens if "
                                              "the process has too many open files. See `ulimit -n`.");
    if (fstat(memory, &status)) return cannot("take", "the carrier's memory");
    if (bytes < sizeof(mpidata_carried) || (uint64_t)status.st_size != bytes)
        return mpidata_error(MPIDATA_ERR_JOB, "mpidata_attach: the carrier's memory does not have the announced size.");
    void *mapped = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (mapped == MAP_FAILED)
        return mpidata_error(MPIDATA_ERR_MEMORY, "mpidata_attach: cannot map %llu bytes of the carrier's memory: %s.",
                             (unsigned long long)bytes, strerror(errno));
#ifdef MADV_HUGEPAGE
    (void)madvise(mapped, (size_t)bytes, MADV_HUGEPAGE); /* only a hint, as in the carrier */
#endif
    channel->shared = mapped;
    return check_memory(channel, bytes);
}

/* Number of this process in its program, from launchers' variables; -1: unknown. Parts are joined in this order. */
#define ELEMENT(name) name,
static int64_t own_number(void) {
    static const char *const names[] = {MPIDATA_CARRIED_NUMBER_VARIABLES(ELEMENT, ELEMENT)};
#undef ELEMENT
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *end;
        const char *text = getenv(names[i]);
        if (!text || !*text) continue;
        const long long number = strtoll(text, &end, 10);
        if (!*end && number >= 0) return number;
    }
    return -1;
}

/* Connect to a carrier; it may name another one in `elsewhere`, then nothing stays open. */
static int meet(mpidata_channel *channel, const char *path, const char *token, char *elsewhere) {
    mpidata_carried_hello hello = {.magic = MPIDATA_CARRIED_MAGIC, .version = MPIDATA_CARRIED_VERSION,
                                   .number = own_number()};
    mpidata_carried_welcome welcome;
    int memory = -1;
    MPIDATA_TRY(connect_to(path, &channel->socket));
    (void)strncpy(hello.token, token, sizeof hello.token - 1);
    ssize_t sent;
    do sent = send(channel->socket, &hello, sizeof hello, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent != (ssize_t)sizeof hello) return gone();
    int status = take_welcome(channel->socket, &welcome, &memory);
    *elsewhere = '\0';
    if (!status && welcome.refused) {
        memcpy(elsewhere, welcome.sentence, sizeof welcome.sentence);
        mpidata_channel_close(channel);
    } else if (!status) status = map_memory(channel, &welcome, memory);
    if (memory >= 0) (void)close(memory);
    return status;
}

int mpidata_channel_open(mpidata_channel *channel, const char *address) {
    char path[256];
    const char *colon = strrchr(address, ':');
    memset(channel, 0, sizeof *channel);
    channel->socket = channel->came[0] = channel->came[1] = -1;
    if (!colon || (size_t)(colon - address) >= sizeof path)
        return mpidata_error(MPIDATA_ERR_JOB, "mpidata_attach: " MPIDATA_CARRIER_VARIABLE " is '%.200s', which names no "
                                              "carrier. Let the job start the program: mpidata run job.yaml.", address);
    (void)snprintf(path, sizeof path, "%.*s", (int)(colon - address), address);
    char elsewhere[MPIDATA_CARRIED_SENTENCE], further[MPIDATA_CARRIED_SENTENCE];
    int status = meet(channel, path, colon + 1, elsewhere);
    if (!status && *elsewhere) {
        status = meet(channel, elsewhere, colon + 1, further);
        if (!status && *further)
            status = mpidata_error(MPIDATA_ERR_JOB, "mpidata_attach: two carriers refer to each other. Use one version of mpidata.");
    }
    if (status) mpidata_channel_close(channel);
    return status;
}

void mpidata_channel_close(mpidata_channel *channel) {
    if (channel->shared) (void)munmap(channel->shared, (size_t)channel->bytes);
    if (channel->socket >= 0) (void)close(channel->socket);
    for (int i = 0; i < 2; i++)
        if (channel->came[i] >= 0) (void)close(channel->came[i]);
    channel->shared = NULL;
    channel->socket = channel->came[0] = channel->came[1] = -1;
}

/* Receive the bytes that wake, and the newest descriptor of each kind that comes with one. */
int mpidata_channel_check(mpidata_channel *channel) {
    char bytes[64];
    ssize_t got;
    int memory;
    do {
        got = receive_with(channel->socket, bytes, sizeof bytes, MSG_DONTWAIT, &memory);
        if (memory < 0) continue;
        int *came = &channel->came[*bytes == MPIDATA_CARRIED_ROOM];
        if (*came >= 0) (void)close(*came);
        *came = memory;
    } while (got > 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return MPIDATA_SUCCESS;
    return got < 0 && (errno == EBADF || errno == ENOTSOCK) ? closed_here() : gone();
}

int mpidata_channel_published(mpidata_channel *channel, int *memory) {
    MPIDATA_TRY(mpidata_channel_check(channel));
    *memory = channel->came[MPIDATA_CARRIED_PUBLISHED];
    channel->came[MPIDATA_CARRIED_PUBLISHED] = -1;
    return MPIDATA_SUCCESS;
}

static void wake_carrier(mpidata_channel *channel) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!MPIDATA_CARRIED_GET(channel->shared->carrier_sleeps)) return;
    MPIDATA_CARRIED_SET(channel->shared->carrier_sleeps, 0);
    (void)send(channel->socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL); /* if there is no room, it has not read the last one */
}

static int has_slot(const mpidata_channel *channel) {
    return channel->committed - MPIDATA_CARRIED_GET(channel->shared->released) < channel->slots;
}

static int has_answer(const mpidata_channel *channel) {
    return MPIDATA_CARRIED_GET(channel->shared->answered) == channel->request;
}

static int wait_for(mpidata_channel *channel, int (*done)(const mpidata_channel *)) {
    for (int i = 0; i < YIELDS; i++) {
        if (done(channel)) return MPIDATA_SUCCESS;
        (void)sched_yield();
    }
    for (;;) {
        MPIDATA_CARRIED_SET(channel->shared->rank_sleeps, 1);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (done(channel)) break;
        struct pollfd look = {.fd = channel->socket, .events = POLLIN};
        (void)poll(&look, 1, LOOK_EVERY_MS);
        MPIDATA_CARRIED_SET(channel->shared->beats, channel->shared->beats + 1);
        if (look.revents) MPIDATA_TRY(mpidata_channel_check(channel));
    }
    MPIDATA_CARRIED_SET(channel->shared->rank_sleeps, 0);
    return MPIDATA_SUCCESS;
}

int mpidata_channel_slot(mpidata_channel *channel, mpidata_carried_sample **sample, char **values) {
    MPIDATA_TRY(wait_for(channel, has_slot));
    char *slot = (char *)channel->shared + channel->slots_at + channel->committed % channel->slots * channel->slot_bytes;
    *sample = (mpidata_carried_sample *)slot;
    *values = slot + channel->values_at;
    return MPIDATA_SUCCESS;
}

/* At short steps a system call would cost more than the step. */
static int check_now_and_then(mpidata_channel *channel) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now)) return MPIDATA_SUCCESS;
    if (now.tv_sec == channel->checked.tv_sec && now.tv_nsec == channel->checked.tv_nsec) return MPIDATA_SUCCESS;
    channel->checked = now;
    return mpidata_channel_check(channel);
}

int mpidata_channel_commit(mpidata_channel *channel) {
    MPIDATA_CARRIED_SET(channel->shared->committed, ++channel->committed);
    wake_carrier(channel);
    return check_now_and_then(channel);
}

int mpidata_channel_ask(mpidata_channel *channel, uint32_t kind, const char *reason) {
    mpidata_carried *shared = channel->shared;
    shared->kind = kind;
    (void)snprintf(shared->reason, sizeof shared->reason, "%s", reason ? reason : "");
    MPIDATA_CARRIED_SET(shared->request, ++channel->request);
    wake_carrier(channel);
    MPIDATA_TRY(wait_for(channel, has_answer));
    *shared->reason = '\0';
    int status = shared->status;
    if (status <= MPIDATA_END) return status == MPIDATA_SUCCESS ? MPIDATA_SUCCESS : MPIDATA_END;
    char sentence[MPIDATA_CARRIED_SENTENCE];
    memcpy(sentence, shared->sentence, sizeof sentence);
    sentence[sizeof sentence - 1] = '\0';
    return mpidata_error(status, "%s", sentence);
}

/* -- questions ------------------------------------------------------------------------------------------------------ */

static int has_room(const mpidata_channel *channel) {
    const mpidata_carried *shared = channel->shared;
    return MPIDATA_CARRIED_GET(shared->answers[channel->place].room) >= shared->questions[channel->place].wants;
}

static int is_answered(const mpidata_channel *channel) {
    const mpidata_carried *shared = channel->shared;
    return MPIDATA_CARRIED_GET(shared->answers[channel->place].answered) == shared->questions[channel->place].asked;
}

int mpidata_channel_room(mpidata_channel *channel, int place, uint64_t bytes, int *memory) {
    *memory = -1;
    channel->place = place;
    MPIDATA_CARRIED_SET(channel->shared->questions[place].wants, bytes);
    wake_carrier(channel);
    MPIDATA_TRY(wait_for(channel, has_room));
    MPIDATA_TRY(mpidata_channel_check(channel));
    *memory = channel->came[MPIDATA_CARRIED_ROOM];
    channel->came[MPIDATA_CARRIED_ROOM] = -1;
    if (*memory >= 0) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_JOB, "mpidata_infer: the memory for a question has not come from the carrier, as happens if "
                                          "the process has too many open files. See `ulimit -n`.");
}

void mpidata_channel_question(mpidata_channel *channel, int place) {
    mpidata_carried_question *question = &channel->shared->questions[place];
    MPIDATA_CARRIED_SET(question->asked, question->asked + 1);
    wake_carrier(channel);
}

int mpidata_channel_answer(mpidata_channel *channel, int place) {
    channel->place = place;
    if (is_answered(channel)) return MPIDATA_SUCCESS;
    MPIDATA_CARRIED_SET(channel->shared->waits, 1);
    const int status = wait_for(channel, is_answered);
    MPIDATA_CARRIED_SET(channel->shared->waits, 0);
    return status;
}
