/* The state of the caller that library functions preserve: errno, and the floating-point environment.
 *
 * A program may enable traps (FOAM_SIGFPE, -ffpe-trap), round in another direction or flush small numbers to 0. The library
 * computes with the program's values without traps, rounded to the nearest. */
#ifndef MPIDATA_CALLER_H
#define MPIDATA_CALLER_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__SSE2__)
#define MPIDATA_MXCSR /* controls all arithmetic, and costs less than <fenv.h> with its x87 */
#else
#include <fenv.h>
#endif

typedef struct {
    int error_number;
#ifdef MPIDATA_MXCSR
    unsigned floating;
#else
    fenv_t floating;
#endif
} mpidata_caller;

void mpidata_caller_keep(mpidata_caller *caller);
void mpidata_caller_restore(mpidata_caller *caller);

/* The first line of a function that programs call, or of a thread, which inherits the environment of its creator. */
#define MPIDATA_CALLED                                                              \
    mpidata_caller caller_ __attribute__((cleanup(mpidata_caller_restore)));        \
    mpidata_caller_keep(&caller_)

/* A compiler may move arithmetic across the line that changes the environment, but not into or out of such a function. */
#define MPIDATA_OUT_OF_LINE __attribute__((noinline))

/* Also for a signalling NaN, and if -ffast-math makes the compiler assume finite numbers. */
static inline int mpidata_is_finite(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits >> 52 & 0x7ff) != 0x7ff;
}

#endif
