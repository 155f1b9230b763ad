/* Puts fields of all dtypes, as dtype_values.py defines them: arrays of the declared dtype and of convertible ones. */
#include <complex.h>
#include <math.h>
#include <mpidata.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 6, STEPS = 3 };

static void put(const char *field, const void *values, mpidata_dtype dtype, int step) {
    const int64_t shape[] = {N};
    const int status = step % 2 ? mpidata_iput(field, values, dtype, 1, shape, NULL) : mpidata_put(field, values, dtype, 1, shape);
    if (status) {
        (void)fprintf(stderr, "%s\n", mpidata_last_error());
        exit(1);
    }
}

#define INTEGERS(name, type, dtype, sign, greatest)                       \
    static type name##_values[N];                                         \
    for (int i = 0; i < N; i++) name##_values[i] = (type)(sign * (8 * step + i)); \
    name##_values[N - 1] = greatest;                                      \
    put(#name, name##_values, dtype, step)

static void put_integers(int step) {
    INTEGERS(int8, int8_t, MPIDATA_INT8, -1, INT8_MAX);
    INTEGERS(int16, int16_t, MPIDATA_INT16, -1, INT16_MAX);
    INTEGERS(int32, int32_t, MPIDATA_INT32, -1, INT32_MAX);
    INTEGERS(int64, int64_t, MPIDATA_INT64, -1, INT64_MAX);
    INTEGERS(uint8, uint8_t, MPIDATA_UINT8, 1, UINT8_MAX);
    INTEGERS(uint16, uint16_t, MPIDATA_UINT16, 1, UINT16_MAX);
    INTEGERS(uint32, uint32_t, MPIDATA_UINT32, 1, UINT32_MAX);
    INTEGERS(uint64, uint64_t, MPIDATA_UINT64, 1, UINT64_MAX);
}

static void put_others(int step) {
    static unsigned char truths[N];
    static uint16_t bits[N];
    static float singles[N];
    static double doubles[N];
    static float complex single_pairs[N];
    static double complex double_pairs[N];
    for (int i = 0; i < N; i++) {
        const int n = 8 * step + i;
        truths[i] = n % 3 ? 0 : (unsigned char)(255 - n); /* any byte but 0 */
        bits[i] = (uint16_t)(0x3c00 + n);
        doubles[i] = (n + 1) / 3.0;
        double_pairs[i] = doubles[i] + (double)n * I;
        if (i == 4) doubles[i] = NAN;
        if (i == 5) doubles[i] = 1e300;
        if (i == 5) double_pairs[i] = 1e300 + I;
        singles[i] = i == 5 ? 3e38f : (float)doubles[i];
        single_pairs[i] = i == 5 ? 3e38f + I : (float complex)double_pairs[i];
    }
    put("bool", truths, MPIDATA_BOOL, step);
    put("float16", bits, MPIDATA_FLOAT16, step);
    put("bfloat16", bits, MPIDATA_BFLOAT16, step);
    put("float32", singles, MPIDATA_FLOAT32, step);
    put("float64", doubles, MPIDATA_FLOAT64, step);
    put("complex64", single_pairs, MPIDATA_COMPLEX64, step);
    put("complex128", double_pairs, MPIDATA_COMPLEX128, step);
    put("float32_of_float64", doubles, MPIDATA_FLOAT64, step);
    put("float16_of_float64", doubles, MPIDATA_FLOAT64, step);
    put("bfloat16_of_float64", doubles, MPIDATA_FLOAT64, step);
    put("float16_of_float32", singles, MPIDATA_FLOAT32, step);
    put("bfloat16_of_float32", singles, MPIDATA_FLOAT32, step);
    put("complex64_of_complex128", double_pairs, MPIDATA_COMPLEX128, step);
}

int main(int argc, char **argv) {
    MPI_Comm group;
    int64_t simulation;
    MPI_Init(&argc, &argv);
    if (mpidata_init(MPI_COMM_WORLD, &group)) return 1;
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS)
        for (int step = 0; step < STEPS; step++) {
            put_integers(step);
            put_others(step);
            if (mpidata_step(step)) break;
            mpidata_wait();
        }
    mpidata_finalize();
    return MPI_Finalize();
}
