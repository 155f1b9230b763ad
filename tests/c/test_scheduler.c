/* A process whose scheduler has closed keeps nothing of it, and no event is lost among many. No MPI: the job, its links
 * and messages are imitated. */
#include "scheduler/scheduler.h"

#include "check.h"
#include "job/job.h"
#include "job/link.h"

static int n_worlds, n_spawned, n_closed, world_status;

#ifdef OPEN_MPI /* there it is a function that must not be called before MPI_Init */
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
    *link = (mpidata_link){.comm = comm, .n_trainers = 1};
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

static int n_here, wrong_after; /* messages of trainer 0; how many come before an invalid one */

int MPI_Improbe(int source, int tag, MPI_Comm comm, int *here, MPI_Message *message, MPI_Status *status) {
    (void)source, (void)tag, (void)comm, (void)message;
    *here = n_here > 0;
    status->MPI_SOURCE = 1;
    return MPI_SUCCESS;
}

int MPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count) {
    (void)status, (void)type;
    *count = (int)sizeof(mpidata_event);
    return MPI_SUCCESS;
}

int MPI_Mrecv(void *target, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status) {
    (void)count, (void)type, (void)message, (void)status;
    ((mpidata_event *)target)->kind = wrong_after-- ? MPIDATA_EVENT_GOODBYE : -1;
    n_here--;
    return MPI_SUCCESS;
}

/* As many events come at once as there is room for; an error is reported after the events before it. */
static void many_events(void) {
    enum { ROOM = 4 };
    mpidata_event events[ROOM];
    int n;
    n_here = 8;
    wrong_after = 7;
    for (int left = 7; left > 0; left -= n) {
        CHECK(mpidata_scheduler_poll(events, ROOM, 5, &n) == MPIDATA_SUCCESS && n == (left < ROOM ? left : ROOM));
        for (int i = 0; i < n; i++) CHECK(events[i].kind == MPIDATA_EVENT_GOODBYE && events[i].rank == 1);
    }
    CHECK(mpidata_scheduler_poll(events, ROOM, 5, &n) == MPIDATA_ERR_WIRE && n == 0);
    CHECK(mpidata_scheduler_poll(events, ROOM, 0, &n) == MPIDATA_SUCCESS && n == 0);
}

int main(void) {
    const MPI_Fint comm = 0;
    world_status = MPIDATA_ERR_MPI;
    CHECK(mpidata_scheduler_open(comm, "plan") == MPIDATA_ERR_MPI);
    world_status = MPIDATA_SUCCESS;
    for (int i = 0; i < 3; i++) {
        CHECK(mpidata_scheduler_open(comm, "plan") == MPIDATA_SUCCESS);
        CHECK(n_worlds == 2 + i && n_spawned == 2 * i);
        many_events();
        CHECK(mpidata_scheduler_link(MPIDATA_ROLE_LOADER, 7, comm) == MPIDATA_SUCCESS);
        CHECK(mpidata_scheduler_link(MPIDATA_ROLE_LOADER, 8, comm) == MPIDATA_SUCCESS);
        CHECK(mpidata_scheduler_close() == MPIDATA_SUCCESS && n_closed == 3 * (i + 1));
        CHECK(mpidata_scheduler_end_of_stream() == MPIDATA_ERR_ORDER && mpidata_scheduler_close() == MPIDATA_ERR_ORDER);
    }
    return 0;
}
