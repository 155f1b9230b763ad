#define _GNU_SOURCE
#include "buffer/copy.h"

#include <string.h>
#include <unistd.h>

#include "program/caller.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { LINE = 64, AHEAD = 8 * LINE, WORTH = 1024 };
static const long CACHE_UNKNOWN = 16 << 20;

int mpidata_exceeds_cache(size_t bytes) {
    long cache = -1;
#ifdef _SC_LEVEL3_CACHE_SIZE
    cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return bytes > (size_t)(cache > 0 ? cache : CACHE_UNKNOWN) / 2;
}

void *mpidata_copy_past_cache(void *restrict target, const void *restrict source, size_t bytes) {
#ifdef __SSE2__
    if (bytes < WORTH) return memcpy(target, source, bytes);
    char *to = target;
    const char *from = source;
    size_t head = (LINE - ((uintptr_t)to & (LINE - 1))) & (LINE - 1);
    if (head > bytes) head = bytes;
    memcpy(to, from, head);
    for (to += head, from += head, bytes -= head; bytes >= LINE; to += LINE, from += LINE, bytes -= LINE) {
        __m128i part[LINE / sizeof(__m128i)];
        _mm_prefetch(from + AHEAD, _MM_HINT_T0); /* beyond the end it does nothing */
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

MPIDATA_OUT_OF_LINE void mpidata_copy_as_float32(void *restrict target, const void *restrict source, int64_t n) {
    float *restrict to = target;
    const double *restrict from = source;
    for (int64_t i = 0; i < n; i++) to[i] = (float)from[i];
}

#define COPY_INDICES(type)                                               \
    const type *from = source;                                           \
    type *to = target;                                                   \
    for (int64_t i = 0; i < n; i++) to[i] = (type)((uint64_t)from[i] + (uint64_t)by);

MPIDATA_OUT_OF_LINE void mpidata_copy_indices(size_t size, void *restrict target, const void *restrict source, int64_t n, int64_t by) {
    if (size == sizeof(int32_t)) {
        COPY_INDICES(int32_t)
    } else {
        COPY_INDICES(int64_t)
    }
}

#define RANGE(type)                                   \
    const type *from = indices;                       \
    type low = from[0], high = from[0];               \
    for (int64_t i = 1; i < n; i++) {                 \
        low = from[i] < low ? from[i] : low;          \
        high = from[i] > high ? from[i] : high;       \
    }                                                 \
    *least = low;                                     \
    *greatest = high;

MPIDATA_OUT_OF_LINE void mpidata_range_of_indices(size_t size, const void *indices, int64_t n, int64_t *least, int64_t *greatest) {
    if (size == sizeof(int32_t)) {
        RANGE(int32_t)
    } else {
        RANGE(int64_t)
    }
}
