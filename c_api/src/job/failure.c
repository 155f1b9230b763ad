#include "job/failure.h"

#include <stdlib.h>

#include "base/status.h"

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5
#include <mpi-ext.h>
#endif

#if defined(OMPI_HAVE_MPI_EXT_FTMPI) && OMPI_HAVE_MPI_EXT_FTMPI

/* Ranks in comm of the members of `failed`. */
static int translate(MPI_Comm comm, MPI_Group failed, int n, int *ranks) {
    MPI_Group all;
    int *numbers = malloc((size_t)n * sizeof *numbers);
    if (!numbers) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a list of %d dead ranks.", n);
    for (int i = 0; i < n; i++) numbers[i] = i;
    int status = mpidata_check_mpi(MPI_Comm_group(comm, &all), "MPI_Comm_group");
    if (!status) {
        status = mpidata_check_mpi(MPI_Group_translate_ranks(failed, n, numbers, all, ranks), "MPI_Group_translate_ranks");
        (void)MPI_Group_free(&all);
    }
    free(numbers);
    return status;
}

int mpidata_acknowledge_failures(MPI_Comm comm, char *dead, int *newly, int *n_newly) {
    MPI_Group failed;
    int n = 0, kept = 0;
    *n_newly = 0;
    MPIDATA_TRY_MPI(MPIX_Comm_failure_ack(comm));
    MPIDATA_TRY_MPI(MPIX_Comm_failure_get_acked(comm, &failed));
    int status = mpidata_check_mpi(MPI_Group_size(failed, &n), "MPI_Group_size");
    if (!status && n > 0) status = translate(comm, failed, n, newly);
    if (failed != MPI_GROUP_EMPTY) (void)MPI_Group_free(&failed);
    MPIDATA_TRY(status);
    for (int i = 0; i < n; i++) {
        if (newly[i] < 0 || dead[newly[i]]) continue;
        dead[newly[i]] = 1;
        newly[kept++] = newly[i];
    }
    *n_newly = kept;
    return MPIDATA_SUCCESS;
}

int mpidata_revoke(MPI_Comm comm) { return mpidata_check_mpi(MPIX_Comm_revoke(comm), "MPIX_Comm_revoke"); }

#else

int mpidata_revoke(MPI_Comm comm) {
    (void)comm;
    return mpidata_error(MPIDATA_ERR_MPI, "This MPI has no ULFM, so the job cannot continue after a rank has died.");
}

int mpidata_acknowledge_failures(MPI_Comm comm, char *dead, int *newly, int *n_newly) {
    (void)comm, (void)dead, (void)newly;
    *n_newly = 0;
    return MPIDATA_SUCCESS;
}

#endif
