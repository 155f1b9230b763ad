#define _GNU_SOURCE
#include "base/beat.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static mpidata_pulse *page;

static uint64_t now_ns(void) {
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Make a page of this size, and name it in the environment, with a wrong inode if `off` is not 0. */
static void make_page(off_t size, uint32_t magic, unsigned long long off) {
    char name[64];
    struct stat status;
    int descriptor = memfd_create("pulse", 0);
    CHECK(descriptor >= 0 && ftruncate(descriptor, size) == 0 && fstat(descriptor, &status) == 0);
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    CHECK(page != MAP_FAILED);
    if (size >= (off_t)sizeof *page) page->magic = magic;
    (void)snprintf(name, sizeof name, "%d:%llu", descriptor, (unsigned long long)status.st_ino + off);
    CHECK(setenv(MPIDATA_PULSE_VARIABLE, name, 1) == 0);
}

static void the_page_of_the_parent(void) {
    make_page(sizeof *page, MPIDATA_PULSE_MAGIC, 0);
    uint64_t before = now_ns();
    mpidata_beat();
    CHECK(page->beat_ns + 20000000 >= before && page->beat_ns <= now_ns()); /* its clock is a coarse one */
    mpidata_tell(MPIDATA_PULSE_JOINED);
    mpidata_tell(MPIDATA_PULSE_LEFT);
    CHECK(page->flags == (MPIDATA_PULSE_JOINED | MPIDATA_PULSE_LEFT));
    mpidata_tell(MPIDATA_PULSE_STARTING);
    mpidata_withdraw(MPIDATA_PULSE_STARTING);
    CHECK(page->flags == (MPIDATA_PULSE_JOINED | MPIDATA_PULSE_LEFT));
    uint64_t first = page->beat_ns;
    const struct timespec moment = {.tv_nsec = 20000000};
    (void)nanosleep(&moment, NULL);
    mpidata_beat();
    CHECK(page->beat_ns > first);
    char longer[2 * sizeof page->at];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    mpidata_beat_at(longer);
    CHECK(strlen(page->at) == sizeof page->at - 1);
    memcpy(longer + sizeof page->at - 3, "\xe2\x82\xac", 3); /* a character of three bytes, with room for only two */
    mpidata_beat_at(longer);
    CHECK(strlen(page->at) == sizeof page->at - 3);
    mpidata_beat_at("");
    CHECK(!*page->at);
}

/* A stopped parent must be continued, or it would never see its program end. */
static void a_parent_that_was_stopped(void) {
    int status = 0;
    make_page(sizeof *page, MPIDATA_PULSE_MAGIC, 0);
    pid_t parent = fork();
    CHECK(parent >= 0);
    if (parent == 0) {
        (void)raise(SIGSTOP);
        _exit(7);
    }
    CHECK(waitpid(parent, &status, WUNTRACED) == parent && WIFSTOPPED(status));
    page->parent = parent;
    mpidata_tell(MPIDATA_PULSE_JOINED);
    CHECK(waitpid(parent, &status, WCONTINUED | WNOHANG) == 0);
    mpidata_tell(MPIDATA_PULSE_LEFT);
    CHECK(waitpid(parent, &status, 0) == parent && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* Another file with the same descriptor must not be changed. */
static void not_the_page(void) {
    mpidata_beat();
    mpidata_tell(MPIDATA_PULSE_JOINED);
    CHECK(page->beat_ns == 0 && page->flags == 0);
}

static void another_inode(void) {
    make_page(sizeof *page, MPIDATA_PULSE_MAGIC, 1);
    not_the_page();
}

static void another_magic(void) {
    make_page(sizeof *page, MPIDATA_PULSE_MAGIC + 1, 0);
    not_the_page();
}

static void no_page(void) {
    CHECK(unsetenv(MPIDATA_PULSE_VARIABLE) == 0);
    mpidata_beat();
    mpidata_tell(MPIDATA_PULSE_JOINED);
}

static void too_short(void) {
    make_page(0, 0, 0);
    mpidata_beat(); /* would die of SIGBUS */
}

static void nonsense(void) {
    CHECK(setenv(MPIDATA_PULSE_VARIABLE, "999:x", 1) == 0);
    mpidata_beat();
}

static atomic_int slow;

/* Replaces mmap: while one thread maps the page, the others come. ThreadSanitizer calls it before its own start. */
__attribute__((no_sanitize("thread"))) void *mmap(void *at, size_t bytes, int protection, int flags, int descriptor, off_t offset) {
    if (atomic_load(&slow)) (void)nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, descriptor, offset);
}

static void *look(void *unused) {
    (void)unused;
    return mpidata_pulse_page();
}

static void several_threads_at_once(void) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    make_page(sizeof *page, MPIDATA_PULSE_MAGIC, 0);
    atomic_store(&slow, 1);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, look, NULL) == 0);
    mpidata_pulse *first = look(NULL);
    CHECK(first);
    for (int i = 0; i < THREADS; i++) {
        void *found = NULL;
        CHECK(pthread_join(threads[i], &found) == 0 && found == first);
    }
}

/* In a separate process, because the page is looked up only once. */
static void apart(void (*test)(void)) {
    int status = 0;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        test();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void) {
    apart(the_page_of_the_parent);
    apart(a_parent_that_was_stopped);
    apart(another_inode);
    apart(another_magic);
    apart(no_page);
    apart(too_short);
    apart(nonsense);
    apart(several_threads_at_once);
    return 0;
}
