/* What is the caller's and stays as it is while a function of the library runs: errno, and the floating-point environment.
 *
 * A program may have the hardware trap (FOAM_SIGFPE, -ffpe-trap), round in another direction or flush small numbers to 0. What
 * the library computes with the program's values is meant without traps, rounded to the nearest. */
#ifndef MPIDATA_CALLER_H
#define MPIDATA_CALLER_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__SSE2__)
#define MPIDATA_MXCSR /* all arithmetic goes by this register, which costs less than <fenv.h> with its x87 */
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

/* In the first line of a function that programs call, or of a thread, which inherits the environment of who has made it. */
#define MPIDATA_CALLED                                                              \
    mpidata_caller caller_ __attribute__((cleanup(mpidata_caller_restore)));        \
    mpidata_caller_keep(&caller_)

/* A compiler may move arithmetic beyond the line that changes the environment, but not into or out of such a function. */
#define MPIDATA_OUT_OF_LINE __attribute__((noinline))

/* Also of a signalling NaN, and where -ffast-math has the compiler take all numbers for finite. */
static inline int mpidata_is_finite(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits >> 52 & 0x7ff) != 0x7ff;
}

#endif
