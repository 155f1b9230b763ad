/* Conversion of put arrays to the declared dtype. */
#ifndef MPIDATA_CONVERT_H
#define MPIDATA_CONVERT_H

#include <stdint.h>

/* The supported conversions: the names in mpidata.h without MPIDATA_, and those in the plan. Others are refused. Floats are
 * rounded to the nearest, ties to even: too large values become infinite, NaN stays NaN. Any nonzero byte of a bool becomes
 * 1. */
#define MPIDATA_CONVERSIONS(X)                    \
    X(FLOAT64, FLOAT32, float64, float32)         \
    X(FLOAT64, FLOAT16, float64, float16)         \
    X(FLOAT64, BFLOAT16, float64, bfloat16)       \
    X(FLOAT32, FLOAT16, float32, float16)         \
    X(FLOAT32, BFLOAT16, float32, bfloat16)       \
    X(COMPLEX128, COMPLEX64, complex128, complex64) \
    X(BOOL, BOOL, bool, bool)

/* n elements. */
typedef void mpidata_convert(void *restrict target, const void *restrict source, int64_t n);

/* The function for two mpidata_dtype; NULL if such values are copied unchanged, or refused. */
mpidata_convert *mpidata_conversion(unsigned from, unsigned to);

/* Whether values of dtype `from` may be put into a field of dtype `to`. */
int mpidata_can_put(unsigned from, unsigned to);

#endif
