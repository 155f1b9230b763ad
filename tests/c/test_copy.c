/* Copies past the cache give the same result as memcpy for any size and alignment. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "buffer/copy.h"

enum { MOST = 5 << 16, EDGE = 64 };

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

/* A round in which the cached copy of each pair takes `slower` times as long as the other one, or, in `odd` of the
 * pairs, `odd_slower` times as long. Returns the way that the round chooses. */
static int round_of(mpidata_copy_choice *choice, double slower, int odd, double odd_slower) {
    int timed, n = 0;
    for (mpidata_copy_way(choice, &timed); !timed; mpidata_copy_way(choice, &timed)) choice->copies++;
    for (; n < 2 * MPIDATA_COPY_PAIRS; n++, choice->copies++) {
        CHECK(mpidata_copy_way(choice, &timed) == n % 2 && timed);
        mpidata_copy_took(choice, n % 2 ? 1e-10 : 1e-10 * (n / 2 < odd ? odd_slower : slower));
    }
    const int way = mpidata_copy_way(choice, &timed);
    CHECK(!timed && way == choice->past);
    return way;
}

static void way_of_a_majority(void) {
    mpidata_copy_choice choice = {0};
    int timed;
    CHECK(mpidata_copy_way(&choice, &timed) == 0 && !timed);
    CHECK(round_of(&choice, 4, 0, 0) == 1);
    CHECK(choice.copies == MPIDATA_COPY_FIRST + 2 * MPIDATA_COPY_PAIRS);
    CHECK(round_of(&choice, 2, 0, 0) == 0);
    CHECK(choice.copies == MPIDATA_COPY_FIRST + MPIDATA_COPY_ROUND + 2 * MPIDATA_COPY_PAIRS);
    CHECK(round_of(&choice, 2, MPIDATA_COPY_PAIRS / 2, 1000) == 0);
    CHECK(round_of(&choice, 4, MPIDATA_COPY_PAIRS / 2, 1) == 1);
    CHECK(round_of(&choice, 4, MPIDATA_COPY_PAIRS / 2 + 1, 1) == 0);
}

static void like_memcpy_to_other(mpidata_copy_choice *choice, unsigned char *target, const unsigned char *source, size_t more) {
    CHECK(mpidata_copy_to_other(choice, target, source, MPIDATA_COPY_LARGE + more) == target);
    CHECK(memcmp(target, source, MPIDATA_COPY_LARGE + more) == 0);
}

static void to_other(unsigned char *target, const unsigned char *source) {
    mpidata_copy_choice choice = {0};
    uint64_t counted = 0;
    for (int i = 0; i < 2 * (MPIDATA_COPY_FIRST + 2 * MPIDATA_COPY_PAIRS); i++) {
        const size_t bytes = i % 4 ? MPIDATA_PAST_CACHE_WORTH + (size_t)(rand() % 9000) : (size_t)(rand() % MPIDATA_PAST_CACHE_WORTH);
        memset(target, 7, bytes + EDGE);
        CHECK(mpidata_copy_to_other(&choice, target, source + i % 64, bytes) == target);
        CHECK(memcmp(target, source + i % 64, bytes) == 0 && target[bytes] == 7);
        counted += i % 4 != 0;
        CHECK(choice.copies == counted);
    }
    CHECK(counted > MPIDATA_COPY_FIRST + 2 * MPIDATA_COPY_PAIRS);
    like_memcpy_to_other(&choice, target, source, 0);
    like_memcpy_to_other(&choice, target, source, 1); /* past the cache, regardless of the choice */
    CHECK(choice.copies == counted + 1);
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
    way_of_a_majority();
    to_other(target, source);
    free(source);
    free(target);
    return 0;
}
