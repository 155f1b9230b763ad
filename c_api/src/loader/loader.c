#include "loader/loader.h"

#include <stdio.h>
#include <unistd.h>

#include "base/beat.h"
#include "base/wait.h"
#include "job/job.h"

static struct {
    int open;
    mpidata_job job;
} loader;

static int need_open(void) {
    if (loader.open) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ORDER, "This process has not joined a job as a loader.");
}

/* Every call ends here: a loader that was given up cannot go on. Another one does its work. */
static int settle(int status) {
    mpidata_beat();
    if (status != MPIDATA_ERR_DIED || !loader.open) return status;
    mpidata_tell(MPIDATA_PULSE_LOST);
    (void)fprintf(stderr, "mpidata: %s This rank ends.\n", mpidata_last_error());
    _exit(1);
}

static int tell_scheduler(int kind) {
    const mpidata_event event = {.kind = kind, .closed = {.simulation = -1}};
    return mpidata_job_send_event(&loader.job, &event);
}

static int open_loader(MPI_Fint world) {
    if (loader.open) return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_loader_open: called a second time.");
    MPIDATA_TRY(mpidata_job_join(MPI_Comm_f2c(world), MPIDATA_ROLE_LOADER, NULL, &loader.job));
    loader.open = 1;
    return tell_scheduler(MPIDATA_EVENT_NEXT);
}

int mpidata_loader_open(MPI_Fint world) { return settle(open_loader(world)); }

static int wait_to_leave(double timeout_s) {
    MPIDATA_TRY(need_open());
    double deadline = mpidata_now() + timeout_s;
    mpidata_backoff backoff = {0};
    for (;;) {
        MPIDATA_TRY(mpidata_job_listen(&loader.job));
        if (loader.job.told_to_stop) return MPIDATA_END;
        mpidata_beat();
        if (mpidata_now() >= deadline) return MPIDATA_ERR_AGAIN;
        mpidata_backoff_pause(&backoff);
    }
}

int mpidata_loader_wait(double timeout_s) { return settle(wait_to_leave(timeout_s)); }

int mpidata_loader_close(void) {
    MPIDATA_TRY(need_open());
    int status = settle(tell_scheduler(MPIDATA_EVENT_FINALIZED));
    mpidata_job_leave(&loader.job);
    loader.open = 0;
    mpidata_job_left();
    return status;
}
