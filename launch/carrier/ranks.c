/* The ranks of the program: their connections, their requests, and the memory shared with each. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "carrier.h"
#include "containers/array.h"

static const double LISTEN_EVERY_S = 1e-4;
enum { HUGE_PAGE = 2 << 20, BUNDLE = 524288, MOST_SLOTS = 64 }; /* bytes of small samples that a rank may be ahead */

/* Bytes of a sample of the largest size: with a carried program, all lengths have a limit. */
static uint64_t most_bytes(const mpidata_plan *plan) {
    uint64_t bytes = plan->slot_bytes;
    for (int f = 0; f < plan->n_fields; f++) {
        const mpidata_field *field = &plan->fields[f];
        if (field->varying < 0 && !field->per_simulation) continue;
        const uint64_t extent = field->varying < 0 ? 1 : (uint64_t)plan->lengths[field->length].at_most;
        bytes += round_up(extent * (uint64_t)field->row * field->element_size, 64);
    }
    return bytes;
}

/* Bytes of the indices of maps if each field is put by its own map. */
static uint64_t map_bytes(const mpidata_plan *plan) {
    uint64_t rows = 0;
    for (int f = 0; f < plan->n_fields; f++) {
        const mpidata_field *field = &plan->fields[f];
        const int64_t most = field->varying < 0 ? field->shape[0] : plan->lengths[field->length].at_most;
        rows += field->ndim ? (uint64_t)most : 0;
    }
    return rows * sizeof(int64_t);
}

/* Pages are allocated when written: a rank that puts a part of each field needs memory only for that. */
void ranks_lay_out(ranks_t *ranks) {
    const mpidata_plan *plan = ranks->plan;
    const uint64_t sample = ranks->sample_bytes = most_bytes(plan);
    uint64_t slots = (uint64_t)plan->in_flight + 1, small = BUNDLE / (sample + 1) + 1;
    if (small > MOST_SLOTS) small = MOST_SLOTS;
    ranks->slots = (uint32_t)(slots > small ? slots : small);
    ranks->values_bytes = sample + map_bytes(plan) + 2 * (uint64_t)MPIDATA_BLOCKS_MAX * MPIDATA_BOUNDARY;
    ranks->values_at = round_up(sizeof(mpidata_carried_sample) + MPIDATA_BLOCKS_MAX * sizeof(mpidata_carried_block), 4096);
    ranks->slot_bytes = ranks->values_at + round_up(ranks->values_bytes, 4096);
    ranks->parameters_at = round_up(sizeof(mpidata_carried), 64);
    const uint64_t plan_at = ranks->parameters_at + (uint64_t)plan->n_parameters * sizeof(double);
    ranks->slots_at = round_up(plan_at + strlen(ranks->plan_text) + 1, 4096);
    ranks->bytes = ranks->slots_at + ranks->slots * ranks->slot_bytes;
}

static void write_head(const ranks_t *ranks, mpidata_carried *head) {
    head->magic = MPIDATA_CARRIED_MAGIC;
    head->version = MPIDATA_CARRIED_VERSION;
    head->bytes = ranks->bytes;
    head->parameters_at = ranks->parameters_at;
    head->plan_at = ranks->parameters_at + (uint64_t)ranks->plan->n_parameters * sizeof(double);
    head->plan_bytes = strlen(ranks->plan_text) + 1;
    head->slots_at = ranks->slots_at;
    head->slot_bytes = ranks->slot_bytes;
    head->values_at = ranks->values_at;
    head->values_bytes = ranks->values_bytes;
    head->slots = ranks->slots;
    head->blocks = MPIDATA_BLOCKS_MAX;
    memcpy(head->who, ranks->who, sizeof head->who);
    strcpy((char *)head + head->plan_at, ranks->plan_text);
}

/* Map it in huge pages, if the system has them for shared memory: a receiver on this host pins the pages of each message. */
static void *map_huge(int memory, uint64_t bytes) {
    const size_t all = (size_t)bytes + HUGE_PAGE;
    char *room = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return MAP_FAILED;
    char *begin = (char *)round_up((uint64_t)(uintptr_t)room, HUGE_PAGE);
    void *mapped = mmap(begin, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, 0);
    const size_t head = (size_t)(begin - room), used = head + (size_t)round_up(bytes, 4096);
    if (mapped == MAP_FAILED) {
        (void)munmap(room, all);
        return MAP_FAILED;
    }
    if (head) (void)munmap(room, head);
    if (used < all) (void)munmap(room + used, all - used);
    (void)madvise(mapped, (size_t)bytes, MADV_HUGEPAGE); /* only a hint */
    return mapped;
}

int ranks_make_memory(const char *name, uint64_t bytes, void **mapped) {
    const int memory = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory < 0) return -1;
    *mapped = MAP_FAILED;
    if (!ftruncate(memory, (off_t)bytes) && !fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        *mapped = map_huge(memory, bytes);
    if (*mapped != MAP_FAILED) return memory;
    (void)close(memory);
    return -1;
}

/* Make the memory of one rank; returns its descriptor, or -1. */
static int make_memory(const ranks_t *ranks, rank_t *rank) {
    void *mapped;
    const int memory = ranks_make_memory("mpidata-carried", ranks->bytes, &mapped);
    if (memory < 0) return -1;
    rank->shared = mapped;
    rank->bytes = ranks->bytes;
    write_head(ranks, rank->shared);
    return memory;
}

int ranks_send(const rank_t *rank, const void *data, size_t bytes, int memory) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (memory >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof memory);
        memcpy(CMSG_DATA(head), &memory, sizeof memory);
    }
    return sendmsg(rank->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

static void drop(rank_t *rank) {
    if (rank->socket >= 0) close(rank->socket);
    if (rank->process >= 0) close(rank->process);
    if (rank->shared) munmap(rank->shared, rank->bytes);
    for (int i = 0; rank->maps && i < MOST_MAPS; i++) (void)mpidata_map_free(&rank->maps[i].map);
    free(rank->maps);
    *rank = (rank_t){.socket = -1, .process = -1};
}

/* Forget one that was refused. */
static void turn_away(ranks_t *ranks, int i) {
    drop(&ranks->all[i]);
    ranks->all[i] = ranks->all[--ranks->n];
}

static int is_here_already(const ranks_t *ranks, const rank_t *rank) {
    for (int i = 0; i < ranks->n; i++)
        if (ranks->all[i].shared && ranks->all[i].pid == rank->pid && rank->pid > 0) return 1;
    return 0;
}

/* Why a process is refused; NULL: it is accepted. */
static const char *why_not(const ranks_t *ranks, const rank_t *rank, const mpidata_carried_hello *hello) {
    static char sentence[MPIDATA_CARRIED_SENTENCE];
    if (hello->version != MPIDATA_CARRIED_VERSION)
        return "the carrier is of another version of mpidata. Link the program with the library that `mpidata config "
               "--carried` names.";
    if (memcmp(hello->token, ranks->token, sizeof ranks->token))
        return "this process does not belong to the program that the carrier runs now. Let the job start the program.";
    if (is_here_already(ranks, rank)) return "this process has attached before. Call mpidata_attach once per program.";
    if (ranks_attached(ranks) < ranks->room) return NULL;
    snprintf(sentence, sizeof sentence, "the program has %d ranks (solvers.carried.ranks), which have all attached, but "
             "one more connects. Correct solvers.carried.ranks, or the number of ranks that the launcher starts.", ranks->room);
    return sentence;
}

/* If several carriers of the group are on this host, they share the ranks by number, or else in turn; returns the socket of
 * another one, or NULL: the rank is for this one. Called only at the first one here. */
static const char *elsewhere(ranks_t *ranks, int64_t number) {
    static char path[sizeof ranks->path + 16];
    int turn = ranks->beside > 1 ? ranks->turn++ % ranks->beside : 0;
    if (ranks->beside > 1 && number >= 0) {
        const int64_t carrier = number * ranks->carriers / ranks->room - ranks->place;
        turn = carrier < 0 ? 0 : carrier < ranks->beside ? (int)carrier : ranks->beside - 1;
    }
    (void)snprintf(path, sizeof path, "%s.%d", ranks->path, turn);
    return turn ? path : NULL;
}

/* Handle the first message of a connection; returns whether it is kept. */
static int greet(ranks_t *ranks, rank_t *rank, double now) {
    mpidata_carried_hello hello;
    mpidata_carried_welcome welcome = {.magic = MPIDATA_CARRIED_MAGIC, .version = MPIDATA_CARRIED_VERSION};
    const ssize_t got = recv(rank->socket, &hello, sizeof hello, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
    if (got != (ssize_t)sizeof hello || hello.magic != MPIDATA_CARRIED_MAGIC) return 0;
    const char *why = why_not(ranks, rank, &hello), *other;
    rank->number = hello.number >= 0 && hello.number < ranks->room ? hello.number : -1;
    other = why ? NULL : elsewhere(ranks, rank->number);
    const int memory = why || other ? -1 : make_memory(ranks, rank);
    if (!why && !other && memory < 0)
        why = "the carrier cannot make memory to share. Give the job more memory, or lower solvers.in_flight in the job file.";
    welcome.bytes = ranks->bytes;
    welcome.refused = why ? MPIDATA_CARRIED_REFUSED : other ? MPIDATA_CARRIED_ELSEWHERE : 0;
    if (other) why = other;
    snprintf(welcome.sentence, sizeof welcome.sentence, "%s", why ? why : "");
    const int stays = ranks_send(rank, &welcome, sizeof welcome, memory) && !why;
    if (memory >= 0) close(memory);
    rank->alive = now;
    return stays;
}

/* Parts are put in the order of the numbers. Ranks that have only connected are last. */
static void sort(ranks_t *ranks) {
    for (int i = 1; i < ranks->n; i++) {
        const rank_t rank = ranks->all[i];
        int at = i;
        for (; rank.shared && at > 0 && (!ranks->all[at - 1].shared || ranks->all[at - 1].number > rank.number); at--)
            ranks->all[at] = ranks->all[at - 1];
        ranks->all[at] = rank;
    }
    ranks->in_order = 1;
    int64_t before = -1;
    for (int i = 0; i < ranks->n && ranks->all[i].shared && ranks->room > 1; before = ranks->all[i++].number)
        if (ranks->all[i].number <= before) ranks->in_order = 0;
}

/* Only processes of this user and of root are accepted. */
static int may_come(int connection, rank_t *rank) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length)) return 0;
    if (peer.uid != geteuid() && peer.uid != 0) return 0;
    rank->pid = peer.pid;
    rank->process = peer.pid > 0 ? (int)syscall(SYS_pidfd_open, peer.pid, 0) : -1; /* 0: in an invisible namespace */
    return 1;
}

static void take_connections(ranks_t *ranks) {
    int connection;
    while ((connection = accept4(ranks->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        rank_t rank = {.socket = connection, .process = -1};
        if (!may_come(connection, &rank) || !mpidata_array_resize(&ranks->all, ranks->n + 1, sizeof rank)) {
            drop(&rank);
            continue;
        }
        ranks->all[ranks->n++] = rank;
    }
}

/* Wake-ups have no content: the memory has the work. */
static int is_closed(const rank_t *rank) {
    char bytes[64];
    ssize_t got;
    do got = recv(rank->socket, bytes, sizeof bytes, MSG_DONTWAIT);
    while (got > 0);
    return got == 0 || (errno != EAGAIN && errno != EINTR);
}

static const char *look_into(const ranks_t *ranks, rank_t *rank, double now) {
    mpidata_carried *shared = rank->shared;
    /* In this order: samples that were committed before a request are seen with it. */
    const uint32_t request = MPIDATA_CARRIED_GET(shared->request), beats = MPIDATA_CARRIED_GET(shared->beats);
    const uint64_t committed = MPIDATA_CARRIED_GET(shared->committed);
    if (beats != rank->beats || rank->asks) rank->alive = now;
    rank->beats = beats;
    if (committed < rank->taken || committed - rank->released > ranks->slots)
        return "A rank of the carried program has counted more samples than there is room for";
    if (request == rank->request) return NULL;
    if (request != rank->request + 1 || rank->asks) return "A rank of the carried program has made two requests at once";
    if (committed != rank->taken) return NULL; /* samples come first */
    rank->request = request;
    rank->asks = (int)shared->kind;
    if (rank->asks < MPIDATA_CARRIED_NEXT || rank->asks > MPIDATA_CARRIED_ERROR)
        return "A rank of the carried program has made an unknown request";
    return NULL;
}

/* Samples of this start that all ranks here have committed. */
static int64_t samples_of_all(const ranks_t *ranks) {
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < ranks->n; i++) {
        const rank_t *rank = &ranks->all[i];
        const uint64_t committed = rank->shared ? MPIDATA_CARRIED_GET(rank->shared->committed) : least;
        if (committed < least) least = committed;
    }
    return least < INT64_MAX ? (int64_t)least : 0;
}

/* The first committed sample whose time is not finite, INT64_MAX: none. */
static int64_t first_not_finite(const ranks_t *ranks, int64_t seen) {
    for (int64_t number = ranks->sent; number < seen; number++)
        for (int i = 0; i < ranks->n; i++) {
            const char *values;
            const rank_t *rank = &ranks->all[i];
            const uint64_t slot = rank->taken + (uint64_t)(number - ranks->sent);
            if (rank->shared && !isfinite(ranks_slot(ranks, rank, slot, &values)->time)) return number;
        }
    return INT64_MAX;
}

const char *ranks_take(ranks_t *ranks, double now) {
    const char *wrong = NULL;
    int greeted = 0;
    const int listens = now - ranks->listened > LISTEN_EVERY_S; /* not at each of many short steps */
    if (listens) {
        ranks->listened = now;
        take_connections(ranks);
    }
    for (int i = ranks->n - 1; i >= 0; i--) {
        rank_t *rank = &ranks->all[i];
        if (!rank->shared) {
            if (!greet(ranks, rank, now)) turn_away(ranks, i);
            else if (rank->shared) greeted = 1;
            continue;
        }
        if (listens && !rank->gone && is_closed(rank)) rank->gone = 1;
        const char *what = look_into(ranks, rank, now);
        if (what) wrong = what;
    }
    if (greeted) sort(ranks);
    ranks->seen = samples_of_all(ranks);
    const int64_t bad = first_not_finite(ranks, ranks->seen);
    ranks->diverged = bad < ranks->seen;
    if (ranks->diverged) ranks->seen = bad; /* that sample is not sent */
    return wrong;
}

int ranks_attached(const ranks_t *ranks) {
    int attached = 0;
    for (int i = 0; i < ranks->n; i++) attached += ranks->all[i].shared != NULL;
    return attached;
}

int ranks_have_ended(const ranks_t *ranks) {
    for (int i = 0; i < ranks->n; i++) {
        struct pollfd process = {.fd = ranks->all[i].process, .events = POLLIN};
        if (process.fd < 0 || poll(&process, 1, 0) != 1) return 0;
    }
    return 1;
}

void ranks_view(const ranks_t *ranks, view_t *view) {
    view->samples = INT64_MAX;
    view->attached = view->left = view->lost = view->ahead = 0;
    view->in_order = ranks->in_order;
    view->least = view->greatest = -1;
    int gone = 0;
    memset(view->asks, 0, sizeof view->asks);
    *view->reason = '\0';
    if (*view->words) memset(view->words, 0, sizeof view->words);
    for (int i = ranks->n - 1; i >= 0; i--) {
        const rank_t *rank = &ranks->all[i];
        if (!rank->shared) continue;
        view->samples = ranks->seen;
        if (!view->attached++) view->greatest = rank->number;
        view->least = rank->number;
        view->left += rank->left;
        view->lost += rank->gone && !rank->left;
        gone += rank->gone;
        view->ahead += !rank->asks && MPIDATA_CARRIED_GET(rank->shared->committed) != rank->taken;
        if (!rank->asks && *rank->shared->reason) memcpy(view->words, rank->shared->reason, sizeof view->words - 1);
        if (!rank->asks) continue;
        view->asks[rank->asks - 1]++;
        memcpy(view->reason, rank->shared->reason, sizeof view->reason);
    }
    view->reason[sizeof view->reason - 1] = '\0';
    view->ended = gone && gone == view->attached && ranks_have_ended(ranks);
}

const mpidata_carried_sample *ranks_slot(const ranks_t *ranks, const rank_t *rank, uint64_t number, const char **values) {
    const char *slot = (const char *)rank->shared + ranks->slots_at + number % ranks->slots * ranks->slot_bytes;
    *values = slot + ranks->values_at;
    return (const mpidata_carried_sample *)slot;
}

void ranks_wake(rank_t *rank) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!MPIDATA_CARRIED_GET(rank->shared->rank_sleeps)) return;
    MPIDATA_CARRIED_SET(rank->shared->rank_sleeps, 0);
    (void)send(rank->socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void ranks_give_back(rank_t *rank, uint64_t released) {
    rank->released = released;
    MPIDATA_CARRIED_SET(rank->shared->released, released);
    ranks_wake(rank);
}

void ranks_answer(rank_t *rank, int status, const char *sentence) {
    rank->shared->status = status;
    snprintf(rank->shared->sentence, sizeof rank->shared->sentence, "%s", sentence);
    rank->asks = 0;
    MPIDATA_CARRIED_SET(rank->shared->answered, rank->request);
    ranks_wake(rank);
}

void ranks_stop(ranks_t *ranks) {
    for (int i = 0; i < ranks->n; i++) {
        rank_t *rank = &ranks->all[i];
        if (!rank->shared) continue;
        MPIDATA_CARRIED_SET(rank->shared->stopping, 1);
        const uint64_t committed = MPIDATA_CARRIED_GET(rank->shared->committed);
        if (committed - rank->released <= ranks->slots) rank->taken = committed; /* no longer needed */
    }
}

/* A rank is at most `slots` samples ahead of those sent, so none has made the step yet at which all end the simulation. */
void ranks_cancel(ranks_t *ranks) {
    if (!ranks->cancel_from) ranks->cancel_from = ranks->room == 1 ? 1 : (uint64_t)ranks->sent + ranks->slots + 1;
    for (int i = 0; i < ranks->n; i++)
        if (ranks->all[i].shared) MPIDATA_CARRIED_SET(ranks->all[i].shared->cancel_from, ranks->cancel_from);
}

void ranks_sleep(ranks_t *ranks, int asleep) {
    for (int i = 0; i < ranks->n; i++)
        if (ranks->all[i].shared) MPIDATA_CARRIED_SET(ranks->all[i].shared->carrier_sleeps, (uint32_t)asleep);
    if (asleep) __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

int ranks_have_news(const ranks_t *ranks) {
    for (int i = 0; i < ranks->n; i++) {
        const rank_t *rank = &ranks->all[i];
        if (rank->shared && MPIDATA_CARRIED_GET(rank->shared->request) != rank->request &&
            MPIDATA_CARRIED_GET(rank->shared->committed) == rank->taken) return 1;
    }
    return !ranks->diverged && samples_of_all(ranks) > ranks->seen;
}

int ranks_poll(const ranks_t *ranks, struct pollfd *polled) {
    int n = 0;
    polled[n++] = (struct pollfd){.fd = ranks->listener, .events = POLLIN};
    for (int i = 0; i < ranks->n; i++)
        if (!ranks->all[i].gone) polled[n++] = (struct pollfd){.fd = ranks->all[i].socket, .events = POLLIN};
    return n;
}

void ranks_forget(ranks_t *ranks) {
    for (int i = 0; i < ranks->n; i++) drop(&ranks->all[i]);
    ranks->n = ranks->turn = 0;
    ranks->sent = ranks->seen = 0;
}
