#include "loader/rows.h"

#include <string.h>

#define HIGH UINT32_C(0xD2B74407) /* of the multiplier */
#define LOW UINT32_C(0xB1CE6E93)
#define AT_ONCE 256 /* numbers in a block, which stays in the L1 cache for all rounds */

/* Several builds of a loop; the best one for the processor is chosen when the library is loaded. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if __GNUC__ >= 12
#define WIDE "arch=x86-64-v4"
#else
#define WIDE "arch=skylake-avx512" /* only that one, no later ones */
#endif
#define BEST_BUILD __attribute__((target_clones(WIDE, "avx2", "default"), optimize("O3")))
#else
#define BEST_BUILD
#endif

/* Halves have at most 31 bits, so that vectors of 32 do. */
typedef struct {
    int left_bits, right_bits;
    uint32_t left_mask, right_mask;
} halves;

static halves halves_of(int bits) {
    halves h = {.left_bits = bits / 2, .right_bits = bits - bits / 2};
    h.left_mask = (UINT32_C(1) << h.left_bits) - 1;
    h.right_mask = (UINT32_C(1) << h.right_bits) - 1;
    return h;
}

/* The lower and the upper 32 bits of a product with the multiplier. */
static inline uint32_t low_of(uint32_t x) { return LOW * x; }
static inline uint32_t high_of(uint32_t x) { return (uint32_t)((uint64_t)LOW * x >> 32) + HIGH * x; }

/* Each round over all numbers, so that the inner loop can be vectorized. */
BEST_BUILD static void forwards(const uint32_t *keys, int rounds, halves h, uint64_t *restrict values, int count) {
    uint32_t left[AT_ONCE], right[AT_ONCE];
    int odd = h.right_bits - h.left_bits;
    for (int i = 0; i < count; i++) {
        left[i] = (uint32_t)(values[i] >> h.right_bits);
        right[i] = (uint32_t)values[i] & h.right_mask;
    }
    for (int r = 0; r < rounds; r++) {
        uint32_t key = keys[r];
        for (int i = 0; i < count; i++) {
            uint32_t before = left[i];
            left[i] = (high_of(before) ^ key ^ right[i]) & h.left_mask;
            right[i] = ((low_of(before) << odd) | (right[i] >> h.left_bits)) & h.right_mask;
        }
    }
    for (int i = 0; i < count; i++) values[i] = (uint64_t)left[i] << h.right_bits | right[i];
}

/* The inverse of an odd number modulo 2^32. Each Newton step doubles the number of correct bits. */
static uint32_t inverse_of(uint32_t odd) {
    uint32_t x = odd;
    for (int i = 0; i < 4; i++) x *= 2 - odd * x;
    return x;
}

BEST_BUILD static void back(const uint32_t *keys, int rounds, halves h, uint64_t *restrict values, int count) {
    uint32_t left[AT_ONCE], right[AT_ONCE];
    int odd = h.right_bits - h.left_bits;
    uint32_t inverse = inverse_of(LOW), odd_mask = (UINT32_C(1) << odd) - 1;
    for (int i = 0; i < count; i++) {
        left[i] = (uint32_t)(values[i] >> h.right_bits);
        right[i] = (uint32_t)values[i] & h.right_mask;
    }
    for (int r = rounds - 1; r >= 0; r--) {
        uint32_t key = keys[r];
        for (int i = 0; i < count; i++) {
            uint32_t before = ((right[i] >> odd) * inverse) & h.left_mask;
            uint32_t low = (left[i] ^ key ^ high_of(before)) & h.left_mask;
            right[i] = (right[i] & odd_mask) << h.left_bits | low;
            left[i] = before;
        }
    }
    for (int i = 0; i < count; i++) values[i] = (uint64_t)left[i] << h.right_bits | right[i];
}

static void permute_block(const uint32_t *keys, int rounds, halves h, int backwards, uint64_t *values, int count) {
    if (backwards)
        back(keys, rounds, h, values, count);
    else
        forwards(keys, rounds, h, values, count);
}

void mpidata_permute(const uint32_t *keys, int rounds, uint64_t n, int bits, int backwards, uint64_t *values,
                     int64_t count) {
    halves h = halves_of(bits);
    uint64_t outside[AT_ONCE];
    int where[AT_ONCE];
    for (int64_t begin = 0; begin < count; begin += AT_ONCE) {
        uint64_t *block = values + begin;
        int length = (int)(count - begin < AT_ONCE ? count - begin : AT_ONCE), left = 0;
        permute_block(keys, rounds, h, backwards, block, length);
        for (int i = 0; i < length; i++) {
            outside[left] = block[i];
            where[left] = i;
            left += block[i] >= n;
        }
        while (left > 0) {
            permute_block(keys, rounds, h, backwards, outside, left);
            int still = 0;
            for (int i = 0; i < left; i++) {
                block[where[i]] = outside[i];
                where[still] = where[i];
                outside[still] = outside[i];
                still += outside[i] >= n;
            }
            left = still;
        }
    }
}

/* Rows are accessed in random order, in memory that no cache holds: without prefetching, each access waits. */
enum { AHEAD = 8 };
#ifdef __GNUC__
#define EXPECT(row, size, writes) (__builtin_prefetch(row, writes), __builtin_prefetch((row) + (size)-1, writes))
#else
#define EXPECT(row, size, writes) ((void)(row))
#endif

int mpidata_scatter(void *batch, int64_t length, const void *rows, int64_t row_bytes, const uint32_t *places,
                    int64_t count) {
    size_t size = (size_t)row_bytes;
    for (int64_t i = 0; i < count; i++) {
        if ((int64_t)places[i] >= length) return 1;
        if (i + AHEAD < count && (int64_t)places[i + AHEAD] < length)
            EXPECT((char *)batch + places[i + AHEAD] * size, size, 1);
        memcpy((char *)batch + places[i] * size, (const char *)rows + (size_t)i * size, size);
    }
    return 0;
}

int mpidata_gather(void *rows, const void *from, int64_t length, int64_t row_bytes, const int64_t *numbers, int64_t count) {
    size_t size = (size_t)row_bytes;
    const uint64_t end = (uint64_t)length;
    for (int64_t i = 0; i < count; i++) {
        if ((uint64_t)numbers[i] >= end) return 1;
        if (i + AHEAD < count && (uint64_t)numbers[i + AHEAD] < end)
            EXPECT((const char *)from + (size_t)numbers[i + AHEAD] * size, size, 0);
        memcpy((char *)rows + (size_t)i * size, (const char *)from + (size_t)numbers[i] * size, size);
    }
    return 0;
}
