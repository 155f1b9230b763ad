#include "server/server.h"

#include "job/job.h"

static mpidata_job job;
static int open;

int mpidata_server_open(MPI_Fint world) {
    if (open) return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_server_open: called a second time.");
    MPIDATA_TRY(mpidata_job_join(MPI_Comm_f2c(world), MPIDATA_ROLE_SERVER, NULL, &job));
    open = 1;
    return MPIDATA_SUCCESS;
}

void mpidata_server_await_end(void) { mpidata_job_await_end(&job); }

int mpidata_server_close(void) {
    if (!open) return mpidata_error(MPIDATA_ERR_ORDER, "This process has not joined a job as a server.");
    mpidata_job_leave(&job);
    open = 0;
    mpidata_job_left();
    return MPIDATA_SUCCESS;
}
