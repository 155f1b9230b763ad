/* A process whose scheduler has closed keeps nothing of it. No MPI: the job and its links only seem to be there. */
#include "scheduler/scheduler.h"

#include "check.h"
#include "job/job.h"
#include "job/link.h"

static int n_worlds, n_spawned, n_closed, world_status;

#ifdef OPEN_MPI /* there it is a function, and not to be called before MPI_Init */
MPI_Comm MPI_Comm_f2c(MPI_Fint comm) {
    (void)comm;
    return MPI_COMM_WORLD;
}
#endif

int mpidata_job_join(MPI_Comm world, int kind, const char *plan_text, mpidata_job *job) {
    (void)plan_text;
    *job = (mpidata_job){.data = world, .kind = kind};
    return MPIDATA_SUCCESS;
}

void mpidata_job_leave(mpidata_job *job) { (void)job; }

void mpidata_job_left(void) {}

int mpidata_link_open_world(mpidata_link *link, MPI_Comm comm, const mpidata_plan *plan) {
    (void)plan;
    *link = (mpidata_link){.comm = comm};
    n_worlds++;
    return world_status;
}

int mpidata_job_trainers_in(const mpidata_job *job, MPI_Comm comm, int *ranks) {
    (void)job, (void)comm, (void)ranks;
    return MPIDATA_SUCCESS;
}

int mpidata_link_open_spawned(mpidata_link *link, MPI_Comm comm, int role, int number, const mpidata_plan *plan,
                              const int *trainer_ranks) {
    (void)role, (void)number, (void)plan, (void)trainer_ranks;
    *link = (mpidata_link){.comm = comm};
    n_spawned++;
    return MPIDATA_SUCCESS;
}

void mpidata_link_close(mpidata_link *link) {
    (void)link;
    n_closed++;
}

int main(void) {
    const MPI_Fint comm = 0;
    world_status = MPIDATA_ERR_MPI;
    CHECK(mpidata_scheduler_open(comm, "plan") == MPIDATA_ERR_MPI);
    world_status = MPIDATA_SUCCESS;
    for (int i = 0; i < 3; i++) {
        CHECK(mpidata_scheduler_open(comm, "plan") == MPIDATA_SUCCESS);
        CHECK(n_worlds == 2 + i && n_spawned == 2 * i);
        CHECK(mpidata_scheduler_link(MPIDATA_ROLE_LOADER, 7, comm) == MPIDATA_SUCCESS);
        CHECK(mpidata_scheduler_link(MPIDATA_ROLE_LOADER, 8, comm) == MPIDATA_SUCCESS);
        CHECK(mpidata_scheduler_close() == MPIDATA_SUCCESS && n_closed == 3 * (i + 1));
        CHECK(mpidata_scheduler_end_of_stream() == MPIDATA_ERR_ORDER && mpidata_scheduler_close() == MPIDATA_ERR_ORDER);
    }
    return 0;
}
