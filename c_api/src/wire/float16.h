/* The floats of 16 bits, for which C has no type, as their bits: float16 (IEEE 754, 5 bits of exponent) and bfloat16 (the upper
 * half of a float32). Narrowing has no branches, so that the compiler can vectorize it. */
#ifndef MPIDATA_FLOAT16_H
#define MPIDATA_FLOAT16_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { MPIDATA_FLOAT16_MANTISSA = 10, MPIDATA_BFLOAT16_MANTISSA = 7 };

static inline uint32_t mpidata_bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float mpidata_float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A float32 that is rounded to 16 bits as the float64 itself would be: truncated, and odd if anything was lost (S. Boldo and
 * G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008). */
static inline float mpidata_float64_to_odd(double value) {
    const float near = (float)value;
    uint32_t bits = mpidata_bits_of(near);
    bits -= fabs((double)near) > fabs(value) ? 1u : 0u;
    bits |= (double)near != value ? 1u : 0u;
    return mpidata_float_of(bits);
}

/* Rounded to the nearest, ties to even; a too large number becomes infinite, NaN stays NaN. */
static inline uint16_t mpidata_float32_as_bfloat16(float value) {
    const uint32_t bits = mpidata_bits_of(value), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const int32_t magnitude = (int32_t)(bits & 0x7fffffff);
    return (uint16_t)(magnitude > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
}

static inline uint16_t mpidata_float32_as_float16(float value) {
    const uint32_t bits = mpidata_bits_of(value), magnitude = bits & 0x7fffffff, half = 0x3f000000; /* 0.5f */
    /* Subnormal: the sum has 2^-24, the unit of subnormal float16, in its last place. */
    const uint32_t subnormal = mpidata_bits_of(mpidata_float_of(magnitude) + mpidata_float_of(half)) - half;
    const uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    const int32_t order = (int32_t)magnitude; /* whose comparisons are faster */
    uint32_t narrow = order < 113 << 23 ? subnormal : normal;
    narrow = order >= 143 << 23 ? 0x7c00 : narrow;
    narrow = order > 0x7f800000 ? 0x7e00 : narrow;
    return (uint16_t)((bits >> 16 & 0x8000) | narrow);
}

/* Exact. */
static inline double mpidata_widen(uint16_t narrow, unsigned mantissa) {
    const uint64_t bias = (UINT64_C(1) << (14 - mantissa)) - 1, magnitude = narrow & 0x7fff, exponent = magnitude >> mantissa;
    uint64_t bits = magnitude << (52 - mantissa);
    double value, least;
    if (exponent == 2 * bias + 1) {
        bits |= UINT64_C(0x7ff) << 52;
    } else if (exponent) {
        bits += (1023 - bias) << 52;
    } else { /* 0 or subnormal: a multiple of the smallest one */
        const uint64_t unit = (1023 - bias + 1 - mantissa) << 52;
        memcpy(&least, &unit, sizeof least);
        value = (double)magnitude * least;
        memcpy(&bits, &value, sizeof bits);
    }
    bits |= (uint64_t)(narrow >> 15) << 63;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline double mpidata_float16_as_float64(uint16_t value) { return mpidata_widen(value, MPIDATA_FLOAT16_MANTISSA); }
static inline double mpidata_bfloat16_as_float64(uint16_t value) { return mpidata_widen(value, MPIDATA_BFLOAT16_MANTISSA); }

#endif
