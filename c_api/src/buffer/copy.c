#define _GNU_SOURCE
#include "buffer/copy.h"

#include <string.h>
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
