/* Status codes and the sentence of the last error, one per thread. */
#ifndef MPIDATA_STATUS_H
#define MPIDATA_STATUS_H

#include "mpidata.h"

#define MPIDATA_TEXT_MAX 2048

#if defined(__GNUC__)
#define MPIDATA_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define MPIDATA_PRINTF(text, first)
#endif

/* Keep the sentence and return `status`, so that a caller can write `return mpidata_error(...)`. */
int mpidata_error(int status, const char *format, ...) MPIDATA_PRINTF(2, 3);

/* MPIDATA_SUCCESS, or MPIDATA_ERR_MPI (_DIED if a rank has died) with the sentence "<what>: <MPI's own text>". */
int mpidata_check_mpi(int mpi_status, const char *what);

/* Whether this MPI error means that a rank has died. Always 0 if the MPI does not report deaths. */
int mpidata_is_failure(int mpi_status);

/* Return from the calling function with the error if an MPI call fails. */
#define MPIDATA_TRY_MPI(call)                                         \
    do {                                                              \
        int try_status_ = mpidata_check_mpi((call), #call);           \
        if (try_status_ != MPIDATA_SUCCESS) return try_status_;       \
    } while (0)

#define MPIDATA_TRY(call)                                             \
    do {                                                              \
        int try_status_ = (call);                                     \
        if (try_status_ != MPIDATA_SUCCESS) return try_status_;       \
    } while (0)

#endif
