/* Moments equal sums in higher precision, in every layout, also with values that are not finite. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "check.h"
#include "wire/float16.h"
#include "wire/moments.h"

static double number(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

/* Mean and sum of squares of every stride-th value. */
static void agrees(const double *values, int64_t outer, int64_t channels, int64_t inner, int64_t channel,
                   const mpidata_moments *found) {
    long double sum = 0, m2 = 0, all = 0;
    double least = INFINITY, greatest = -INFINITY;
    int64_t n = 0, bad = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t o = 0; o < outer; o++)
            for (int64_t i = 0; i < inner; i++) {
                double value = values[(o * channels + channel) * inner + i];
                int good = fabs(value) <= 1e150;
                if (pass && good) m2 += (value - sum / n) * (value - sum / n);
                if (pass) continue;
                n += good;
                bad += !good;
                if (!good) continue;
                sum += value;
                all += (long double)value * value;
                least = fmin(least, value);
                greatest = fmax(greatest, value);
            }
    double root = n ? (double)sqrtl(all / n) : 0, std = n ? (double)sqrtl(m2 / n) : 0;
    CHECK(found->count == (double)n && found->not_finite == (double)bad);
    CHECK(found->least == least && found->greatest == greatest);
    CHECK(!n || fabs(found->mean - (double)(sum / n)) <= 1e-12 * root);
    CHECK(!n || fabs(sqrt(found->m2 / (double)n) - std) <= 1e-12 * root);
    CHECK(mpidata_moments_possible(found, n + bad) && !mpidata_moments_possible(found, n + bad + 1));
}

enum { LANES = MPIDATA_MOMENTS_LANES, LONGEST = MPIDATA_MOMENTS_LONGEST, GATHERED = MPIDATA_MOMENTS_GATHERED };

static void every_layout(void) {
    static const int64_t layouts[][3] = {{1, 1, LANES - 1}, {1, 1, LANES}, {1, 1, LANES + 1},
                                         {1, 1, LONGEST - 1}, {1, 1, LONGEST}, {1, 1, LONGEST + 1}, {1, 2, 2 * LONGEST},
                                         {9, 2, GATHERED - 1}, {9, 2, GATHERED}, {9, 2, GATHERED + 1}, {300, 3, LANES - 1},
                                         {300, 3, LANES}, {300, 3, LANES + 1}, {LONGEST - 1, 2, 1}, {LONGEST + 1, 2, 1},
                                         {1, 1, 1}, {1, 1, 15}, {3, 1, 7}, {1, 1, 9000}, {5000, 3, 1}, {700, 3, 9},
                                         {1, 5, 64}, {2, 3, 4097}, {1, 7, 63}, {40, 1, 300}, {0, 1, 5}, {3, 2, 0}};
    uint64_t state = 7;
    for (size_t l = 0; l < sizeof layouts / sizeof layouts[0]; l++)
        for (int kind = 0; kind < 5; kind++) {
            int64_t outer = layouts[l][0], channels = layouts[l][1], inner = layouts[l][2], n = outer * channels * inner;
            double *values = malloc((size_t)(n + 1) * sizeof *values);
            mpidata_moments found[8];
            for (int64_t i = 0; i < n; i++) {
                values[i] = kind == 1 ? 1e6 + 1e-3 * number(&state) : kind == 2 ? 1e140 * number(&state) : number(&state) - 0.5;
                if (kind == 3 && number(&state) < 0.01) values[i] = number(&state) < 0.5 ? NAN : -INFINITY;
                if (kind == 3 && number(&state) < 0.01) values[i] = 2e150;
                if (kind == 4) values[i] = i ? values[i] : 1e9; /* the first value is far from the others */
            }
            mpidata_moments_of(2, values, outer, channels, inner, found);
            for (int64_t c = 0; c < channels; c++) agrees(values, outer, channels, inner, c, &found[c]);
            free(values);
        }
}

static void every_type(void) {
    enum { N = 5003 };
    static float f[N];
    static int32_t i32[N];
    static int64_t i64[N];
    static uint8_t u8[N];
    static int8_t i8[N];
    static uint64_t u64[N];
    static uint16_t f16[N], bf16[N];
    static double values[8][N];
    uint64_t state = 3;
    for (int i = 0; i < N; i++) {
        double x = number(&state);
        values[0][i] = f[i] = (float)(x * 3e38 * (x < 0.5 ? -1 : 1));
        values[1][i] = i32[i] = (int32_t)((x - 0.5) * 4294967295.0);
        values[2][i] = (double)(i64[i] = (int64_t)((x - 0.5) * 1e15));
        values[3][i] = u8[i] = (uint8_t)(x * 256);
        values[4][i] = mpidata_float16_as_float64(f16[i] = (uint16_t)(x * 65536)); /* also NaN and infinities */
        values[5][i] = mpidata_bfloat16_as_float64(bf16[i] = (uint16_t)(x * 65536));
        values[6][i] = i8[i] = (int8_t)((x - 0.5) * 256);
        values[7][i] = (double)(u64[i] = (uint64_t)(x * 1e15));
    }
    const void *typed[] = {f, i32, i64, u8, f16, bf16, i8, u64};
    const unsigned dtypes[] = {1, 3, 4, 5, 12, 13, 6, 10};
    for (int t = 0; t < 8; t++)
        for (int channels = 1; channels < 3; channels++) {
            mpidata_moments found[2];
            int64_t n = channels == 1 ? N : N / 2;
            mpidata_moments_of(dtypes[t], typed[t], n, channels, 1, found);
            for (int c = 0; c < channels; c++) agrees(values[t], n, channels, 1, c, &found[c]);
        }
}

static void merging_in_parts(void) {
    enum { N = 9000 };
    static double values[N];
    uint64_t state = 11;
    mpidata_moments all, part;
    for (int i = 0; i < N; i++) values[i] = 100 + number(&state);
    values[17] = NAN;
    mpidata_moments_clear(&all, 1);
    for (int at = 0, n; at < N; at += n) {
        n = (int)(number(&state) * 500);
        if (n > N - at) n = N - at;
        mpidata_moments_of(2, values + at, 1, 1, n, &part);
        mpidata_moments_merge(&all, &part, 1);
    }
    agrees(values, 1, 1, N, 0, &all);
}

static void what_cannot_be(void) {
    const mpidata_moments good = {.count = 3, .mean = 1, .m2 = 2, .least = 0, .greatest = 2, .not_finite = 1};
    CHECK(mpidata_moments_possible(&good, 4) && !mpidata_moments_possible(&good, 3));
    for (int i = 0; i < MPIDATA_MOMENTS_NUMBERS; i++) {
        mpidata_moments bad = good;
        ((double *)&bad)[i] = NAN;
        CHECK(!mpidata_moments_possible(&bad, 4));
    }
    mpidata_moments bad = good;
    bad.m2 = -1;
    CHECK(!mpidata_moments_possible(&bad, 4));
    bad = good;
    bad.least = 3;
    CHECK(!mpidata_moments_possible(&bad, 4));
    bad = good;
    bad.count = 5;
    bad.not_finite = -1;
    CHECK(!mpidata_moments_possible(&bad, 4));
}

int main(void) {
    every_layout();
    every_type();
    merging_in_parts();
    what_cannot_be();
    return 0;
}
