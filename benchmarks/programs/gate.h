/* The gate of gate.py, for C. */
#ifndef GATE_H
#define GATE_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { GATE_GO = 0, GATE_STOP = 1, GATE_MADE = 2, GATE_LAST = 4, GATE_SIZE = 4096, GATE_BATCH = 32 };
/* Words for turns, as in turns.py: how far the producer may go, the number of the turn, the last finished turn, its
 * seconds, and the batches of a turn. */
enum { GATE_LAST_STEP = 5, GATE_TURN = 6, GATE_DONE = 7, GATE_SECONDS = 8, GATE_COUNT = 9 };

static inline volatile int64_t *gate_map(const char *folder) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/gate", folder);
    int file = open(path, O_RDWR);
    void *words = file < 0 ? MAP_FAILED : mmap(NULL, GATE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (words == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    (void)close(file);
    return words;
}

static inline double gate_now(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline void gate_result(const char *folder, int64_t samples, double seconds) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/result.json", folder);
    FILE *file = fopen(path, "w");
    if (!file || fprintf(file, "{\"samples\": %lld, \"seconds\": %.9f}\n", (long long)samples, seconds) < 0 ||
        fclose(file)) {
        perror(path);
        exit(1);
    }
}

static inline int gate_is_turn(const volatile int64_t *gate) { return gate[GATE_TURN] != gate[GATE_DONE]; }

static inline void gate_turn_done(volatile int64_t *gate, double seconds) {
    ((volatile double *)gate)[GATE_SECONDS] = seconds;
    gate[GATE_DONE] = gate[GATE_TURN];
}

/* Allocate memory and touch all its pages. */
static inline float *gate_memory(size_t bytes) {
    float *memory = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
    if (!memory) {
        (void)fprintf(stderr, "Out of memory: %zu bytes.\n", bytes);
        exit(1);
    }
    for (size_t i = 0; i < bytes / sizeof *memory; i++) memory[i] = 1.0f;
    return memory;
}

/* The same in huge pages, rounded up to a whole number of them. */
static inline float *gate_huge(size_t bytes) {
    const size_t page = 2 << 20, all = (bytes + page - 1) / page * page;
    float *memory = aligned_alloc(page, all);
    if (!memory || madvise(memory, all, MADV_HUGEPAGE)) {
        perror("Huge pages");
        exit(1);
    }
    for (size_t i = 0; i < all / sizeof *memory; i++) memory[i] = 1.0f;
    return memory;
}

#endif
