#include "dtypes/convert.h"

#include "base/status.h"
#include "wire/float16.h"
#include "program/caller.h"
#include "plan_text/plan_text.h"

#define CONVERT(name, source_type, target_type, value)                                                          \
    MPIDATA_OUT_OF_LINE static void convert_##name(void *restrict target, const void *restrict source, int64_t n) { \
        target_type *restrict to = target;                                                                      \
        const source_type *restrict from = source;                                                              \
        for (int64_t i = 0; i < n; i++) to[i] = value;                                                          \
    }

CONVERT(float64_to_float32, double, float, (float)from[i])
CONVERT(float64_to_float16, double, uint16_t, mpidata_float32_as_float16(mpidata_float64_to_odd(from[i])))
CONVERT(float64_to_bfloat16, double, uint16_t, mpidata_float32_as_bfloat16(mpidata_float64_to_odd(from[i])))
CONVERT(float32_to_float16, float, uint16_t, mpidata_float32_as_float16(from[i]))
CONVERT(float32_to_bfloat16, float, uint16_t, mpidata_float32_as_bfloat16(from[i]))
CONVERT(bool_to_bool, uint8_t, uint8_t, from[i] != 0)

static void convert_complex128_to_complex64(void *restrict target, const void *restrict source, int64_t n) {
    convert_float64_to_float32(target, source, 2 * n);
}

#define ONE_MORE(in_c, name, type, kind, in_mpi, moments) +1
enum { DTYPES_END = 1 MPIDATA_DTYPES(ONE_MORE) }; /* mpidata_dtype begins at 1 */

#define BY_DTYPES(from_c, to_c, from, to) [MPIDATA_##from_c][MPIDATA_##to_c] = convert_##from##_to_##to,
static mpidata_convert *const conversions[DTYPES_END][DTYPES_END] = {MPIDATA_CONVERSIONS(BY_DTYPES)};

mpidata_convert *mpidata_conversion(unsigned from, unsigned to) {
    return from < DTYPES_END && to < DTYPES_END ? conversions[from][to] : NULL;
}

int mpidata_can_put(unsigned from, unsigned to) { return from == to || mpidata_conversion(from, to); }
