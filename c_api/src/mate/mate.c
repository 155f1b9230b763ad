#include "mate/mate.h"

#include "job/job.h"

static mpidata_job job;
static int open;

static int is_open(void) {
    return open ? MPIDATA_SUCCESS : mpidata_error(MPIDATA_ERR_ORDER, "This process has not joined a job as a mate.");
}

int mpidata_mate_open(MPI_Fint world) {
    if (open) return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_mate_open: called a second time.");
    MPIDATA_TRY(mpidata_job_join(MPI_Comm_f2c(world), MPIDATA_ROLE_MATE, NULL, &job));
    open = 1;
    return MPIDATA_SUCCESS;
}

int mpidata_mate_look(void) {
    MPIDATA_TRY(is_open());
    return mpidata_job_listen(&job);
}

void mpidata_mate_await_end(void) { mpidata_job_await_end(&job); }

int mpidata_mate_close(void) {
    MPIDATA_TRY(is_open());
    mpidata_job_leave(&job);
    open = 0;
    mpidata_job_left();
    return MPIDATA_SUCCESS;
}
