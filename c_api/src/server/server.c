#include "server/server.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/beat.h"
#include "job/job.h"

static mpidata_job job;
static int open;

int mpidata_server_open(MPI_Fint world) {
    if (open) return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_server_open: called a second time.");
    MPIDATA_TRY(mpidata_job_join(MPI_Comm_f2c(world), MPIDATA_ROLE_SERVER, NULL, &job));
    open = 1;
    return MPIDATA_SUCCESS;
}

void mpidata_server_await_end(void) {
    for (; !mpidata_job_listen(&job); mpidata_beat()) (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    mpidata_tell(MPIDATA_PULSE_LOST);
    (void)fprintf(stderr, "mpidata: %s This rank ends.\n", mpidata_last_error());
    _exit(1);
}

int mpidata_server_close(void) {
    if (!open) return mpidata_error(MPIDATA_ERR_ORDER, "This process has not joined a job as a server.");
    mpidata_job_leave(&job);
    open = 0;
    mpidata_job_left();
    return MPIDATA_SUCCESS;
}
