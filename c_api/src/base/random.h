/* xoshiro256** of Blackman and Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 47 (2021), seeded by
 * SplitMix64 as its authors recommend. */
#ifndef MPIDATA_RANDOM_H
#define MPIDATA_RANDOM_H

#include <stdint.h>

typedef struct {
    uint64_t state[4];
} mpidata_random;

/* Streams with the same seed are independent. */
void mpidata_random_seed(mpidata_random *random, uint64_t seed, uint64_t stream);

/* Uniform on 0 ... n-1, n > 0, without bias. */
int64_t mpidata_random_below(mpidata_random *random, int64_t n);

#endif
