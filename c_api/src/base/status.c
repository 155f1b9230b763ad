#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#if !defined(MPIDATA_WITHOUT_MPI) && defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5
#include <mpi-ext.h>
#endif

static _Thread_local char last_error[MPIDATA_TEXT_MAX];

int mpidata_error(int status, const char *format, ...) {
    /* The arguments may include the current sentence, hence the second buffer. */
    char text[MPIDATA_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(last_error, text, sizeof text);
    return status;
}

#ifndef MPIDATA_WITHOUT_MPI
int mpidata_is_failure(int mpi_status) {
#if defined(OMPI_HAVE_MPI_EXT_FTMPI) && OMPI_HAVE_MPI_EXT_FTMPI
    int class = MPI_SUCCESS;
    if (mpi_status == MPI_SUCCESS || MPI_Error_class(mpi_status, &class) != MPI_SUCCESS) return 0;
    return class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_PROC_FAILED_PENDING || class == MPIX_ERR_REVOKED;
#else
    (void)mpi_status;
    return 0;
#endif
}

int mpidata_check_mpi(int mpi_status, const char *what) {
    if (mpi_status == MPI_SUCCESS) return MPIDATA_SUCCESS;
    char text[MPI_MAX_ERROR_STRING] = "unknown error";
    int length = 0;
    if (MPI_Error_string(mpi_status, text, &length) != MPI_SUCCESS) length = 0;
    return mpidata_error(mpidata_is_failure(mpi_status) ? MPIDATA_ERR_DIED : MPIDATA_ERR_MPI, "MPI call failed: %s: %s.",
                         what, text);
}
#endif

const char *mpidata_last_error(void) { return last_error; }

const char *mpidata_strerror(int status) {
    switch (status) {
    case MPIDATA_SUCCESS: return "success";
    case MPIDATA_END: return "no more simulations, or the job is stopping";
    case MPIDATA_ERR_ORDER: return "call at the wrong moment";
    case MPIDATA_ERR_ARGUMENT: return "invalid argument";
    case MPIDATA_ERR_FIELD: return "field not declared, put twice or not put";
    case MPIDATA_ERR_SHAPE: return "shape is not the declared one";
    case MPIDATA_ERR_DTYPE: return "dtype is not the declared one";
    case MPIDATA_ERR_BLOCK: return "block outside its field, or blocks overlap or leave a hole";
    case MPIDATA_ERR_PARAMETER: return "parameter not declared";
    case MPIDATA_ERR_JOB: return "the MPI world is not the one the job was planned for";
    case MPIDATA_ERR_MPI: return "an MPI call failed";
    case MPIDATA_ERR_MEMORY: return "out of memory";
    case MPIDATA_ERR_WIRE: return "a message does not fit the job";
    case MPIDATA_ERR_AGAIN: return "nothing yet within the given time";
    case MPIDATA_CHECKPOINT: return "this is the batch of a checkpoint";
    case MPIDATA_ERR_DIED: return "a rank has died";
    case MPIDATA_MEET: return "the trainers are to come together";
    case MPIDATA_ERR_DEVICE: return "a call of a device's driver failed";
    case MPIDATA_CANCELLED: return "the simulation is cancelled";
    default: return "unknown status code";
    }
}
