/* Copies past the cache give what memcpy gives, whatever the size and the alignment. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "buffer/copy.h"

enum { MOST = 3 << 16, EDGE = 64 };

static void like_memcpy(unsigned char *target, const unsigned char *source, size_t to, size_t from, size_t bytes) {
    memset(target, 7, MOST + 3 * EDGE);
    CHECK(mpidata_copy_past_cache(target + to, source + from, bytes) == target + to);
    CHECK(memcmp(target + to, source + from, bytes) == 0);
    for (size_t i = 0; i < to; i++) CHECK(target[i] == 7);
    for (size_t i = to + bytes; i < to + bytes + EDGE; i++) CHECK(target[i] == 7);
}

static size_t cache(int name, long unknown) {
    const long bytes = sysconf(name);
    return (size_t)(bytes > 0 ? bytes : unknown);
}

static void caches_to_a_byte(void) {
#ifdef _SC_LEVEL3_CACHE_SIZE
    const size_t half = cache(_SC_LEVEL3_CACHE_SIZE, MPIDATA_CACHE_UNKNOWN) / 2;
    CHECK(!mpidata_exceeds_cache(half) && mpidata_exceeds_cache(half + 1));
#endif
}

int main(void) {
    unsigned char *source = malloc(MOST + 2 * EDGE), *target = malloc(MOST + 3 * EDGE);
    CHECK(source && target);
    srand(1);
    for (int i = 0; i < MOST + 2 * EDGE; i++) source[i] = (unsigned char)(rand() & 0xff);
    for (size_t bytes = 0; bytes < 300; bytes++) like_memcpy(target, source, bytes % 61, bytes % 17, bytes);
    for (size_t bytes = 4090; bytes < 4300; bytes++) like_memcpy(target, source, bytes % 61, bytes % 17, bytes);
    for (size_t bytes = MPIDATA_PAST_CACHE_WORTH - 2; bytes <= MPIDATA_PAST_CACHE_WORTH + 2; bytes++)
        for (size_t at = 0; at < EDGE; at++) like_memcpy(target, source, at, EDGE - at, bytes);
    for (int i = 0; i < 200; i++)
        like_memcpy(target, source, (size_t)(rand() % EDGE), (size_t)(rand() % EDGE), (size_t)(rand() % MOST));
    CHECK(!mpidata_exceeds_cache(4096) && mpidata_exceeds_cache((size_t)4 << 30));
    caches_to_a_byte();
    free(source);
    free(target);
    return 0;
}
