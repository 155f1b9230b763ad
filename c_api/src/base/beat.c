#define _GNU_SOURCE
#include "base/beat.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

/* The page, or NULL if the descriptor is not the one that mpidata-rank has named. */
static mpidata_pulse *map_page(void) {
    const char *name = getenv(MPIDATA_PULSE_VARIABLE);
    int descriptor;
    unsigned long long inode;
    struct stat status;
    if (!name || sscanf(name, "%d:%llu", &descriptor, &inode) != 2) return NULL;
    if (fstat(descriptor, &status) || status.st_ino != inode || status.st_size < (off_t)sizeof(mpidata_pulse)) return NULL;
    mpidata_pulse *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (page == MAP_FAILED) return NULL;
    if (page->magic == MPIDATA_PULSE_MAGIC) return page;
    (void)munmap(page, sizeof *page);
    return NULL;
}

mpidata_pulse *mpidata_pulse_page(void) {
    static _Atomic(mpidata_pulse *) found;
    static atomic_int looked;
    if (!atomic_load(&looked)) { /* concurrent threads each look for themselves */
        mpidata_pulse *none = NULL, *page = map_page();
        if (page && !atomic_compare_exchange_strong(&found, &none, page)) (void)munmap(page, sizeof *page);
        atomic_store(&looked, 1);
    }
    return atomic_load(&found);
}

void mpidata_beat(void) {
    mpidata_pulse *page = mpidata_pulse_page();
    struct timespec now;
    if (!page || clock_gettime(CLOCK_MONOTONIC_COARSE, &now)) return;
    uint64_t ns = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
    atomic_store_explicit(&page->beat_ns, ns, memory_order_relaxed);
}

void mpidata_beat_at(const char *what) {
    mpidata_pulse *page = mpidata_pulse_page();
    size_t length = strnlen(what, sizeof page->at - 1);
    while (what[length] && length && ((unsigned char)what[length] & 0xc0) == 0x80) length--; /* not within a character */
    if (page) (void)snprintf(page->at, sizeof page->at, "%.*s", (int)length, what);
    mpidata_beat();
}

void mpidata_tell_batches(int64_t batches) {
    mpidata_pulse *page = mpidata_pulse_page();
    if (page) atomic_store_explicit(&page->batches, batches, memory_order_relaxed);
}

void mpidata_tell(uint32_t flags) {
    mpidata_pulse *page = mpidata_pulse_page();
    if (!page) return;
    atomic_fetch_or(&page->flags, flags);
    /* In case the parent was stopped: unless it sees its program end, the job does not end. */
    if (flags & MPIDATA_PULSE_ENDS && page->parent > 1) (void)kill(page->parent, SIGCONT);
}

void mpidata_withdraw(uint32_t flags) {
    mpidata_pulse *page = mpidata_pulse_page();
    if (page) atomic_fetch_and(&page->flags, ~flags);
}
