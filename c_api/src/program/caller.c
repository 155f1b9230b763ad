#include "program/caller.h"

#include <errno.h>

#ifdef MPIDATA_MXCSR
#include <xmmintrin.h>

enum { DEFAULT = 0x1f80, FLAGS = 0x3f }; /* no traps, to the nearest, nothing flushed; what has happened */

MPIDATA_OUT_OF_LINE void mpidata_caller_keep(mpidata_caller *caller) {
    caller->error_number = errno;
    caller->floating = _mm_getcsr();
    if ((caller->floating & ~(unsigned)FLAGS) != DEFAULT) _mm_setcsr(DEFAULT);
}

MPIDATA_OUT_OF_LINE void mpidata_caller_restore(mpidata_caller *caller) {
    if (_mm_getcsr() != caller->floating) _mm_setcsr(caller->floating);
    errno = caller->error_number;
}
#else
MPIDATA_OUT_OF_LINE void mpidata_caller_keep(mpidata_caller *caller) {
    caller->error_number = errno;
    (void)fegetenv(&caller->floating);
    (void)fesetenv(FE_DFL_ENV); /* feholdexcept does not change the rounding mode */
}

MPIDATA_OUT_OF_LINE void mpidata_caller_restore(mpidata_caller *caller) {
    (void)fesetenv(&caller->floating);
    errno = caller->error_number;
}
#endif
