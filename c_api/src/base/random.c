#include "base/random.h"

static uint64_t split_mix(uint64_t *x) {
    uint64_t z = (*x += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

void mpidata_random_seed(mpidata_random *random, uint64_t seed, uint64_t stream) {
    uint64_t x = stream;
    x = seed ^ split_mix(&x);
    for (int i = 0; i < 4; i++) random->state[i] = split_mix(&x);
}

static uint64_t rotate(uint64_t x, int bits) { return (x << bits) | (x >> (64 - bits)); }

static uint64_t next(mpidata_random *random) {
    uint64_t *s = random->state;
    uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

int64_t mpidata_random_below(mpidata_random *random, int64_t n) {
    /* Numbers of the last, incomplete cycle of n would favour the small results. */
    uint64_t bound = (uint64_t)n, incomplete = (UINT64_MAX - bound + 1) % bound, x;
    do x = next(random);
    while (x > UINT64_MAX - incomplete);
    return (int64_t)(x % bound);
}
