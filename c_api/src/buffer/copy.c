#define _GNU_SOURCE
#include "buffer/copy.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { LINE = 64, AHEAD = 8 * LINE };

int mpidata_exceeds_cache(size_t bytes) {
    long cache = -1;
#ifdef _SC_LEVEL3_CACHE_SIZE
    cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return bytes > (size_t)(cache > 0 ? cache : MPIDATA_CACHE_UNKNOWN) / 2;
}

void *mpidata_copy_past_cache(void *restrict target, const void *restrict source, size_t bytes) {
#ifdef __SSE2__
    if (bytes < MPIDATA_PAST_CACHE_WORTH) return memcpy(target, source, bytes);
    char *to = target;
    const char *from = source;
    size_t head = (LINE - ((uintptr_t)to & (LINE - 1))) & (LINE - 1);
    if (head > bytes) head = bytes;
    memcpy(to, from, head);
    for (to += head, from += head, bytes -= head; bytes >= LINE; to += LINE, from += LINE, bytes -= LINE) {
        __m128i part[LINE / sizeof(__m128i)];
        _mm_prefetch(from + AHEAD, _MM_HINT_T0); /* has no effect beyond the end */
        memcpy(part, from, LINE);
        for (size_t i = 0; i < LINE / sizeof *part; i++) _mm_stream_si128((__m128i *)(void *)to + i, part[i]);
    }
    memcpy(to, from, bytes);
    _mm_sfence();
    return target;
#else
    return memcpy(target, source, bytes);
#endif
}

/* Number of the next copy in its round, from 0; at least 2 * MPIDATA_COPY_PAIRS: not in a round. */
static int of_round(const mpidata_copy_choice *choice) {
    return choice->copies < MPIDATA_COPY_FIRST ? MPIDATA_COPY_ROUND
                                               : (int)((choice->copies - MPIDATA_COPY_FIRST) % MPIDATA_COPY_ROUND);
}

int mpidata_copy_way(const mpidata_copy_choice *choice, int *timed) {
    const int copy = of_round(choice);
    *timed = copy < 2 * MPIDATA_COPY_PAIRS;
    return *timed ? copy % 2 : choice->past;
}

void mpidata_copy_took(mpidata_copy_choice *choice, double seconds_per_byte) {
    const int copy = of_round(choice);
    if (copy == 0) choice->slower = 0;
    if (copy % 2 == 0)
        choice->cached = seconds_per_byte;
    else
        choice->slower += choice->cached > (double)MPIDATA_COPY_SLOWER * seconds_per_byte;
    if (copy == 2 * MPIDATA_COPY_PAIRS - 1) choice->past = choice->slower > MPIDATA_COPY_PAIRS / 2;
}

static double seconds(void) {
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void *mpidata_copy_to_other(mpidata_copy_choice *choice, void *restrict target, const void *restrict source, size_t bytes) {
    if (bytes < MPIDATA_PAST_CACHE_WORTH) return memcpy(target, source, bytes);
    if (bytes > MPIDATA_COPY_LARGE) return mpidata_copy_past_cache(target, source, bytes);
    int timed;
    const int past = mpidata_copy_way(choice, &timed);
    const double begun = timed ? seconds() : 0;
    if (past)
        (void)mpidata_copy_past_cache(target, source, bytes);
    else
        memcpy(target, source, bytes);
    if (timed) mpidata_copy_took(choice, (seconds() - begun) / (double)bytes);
    choice->copies++;
    return target;
}
