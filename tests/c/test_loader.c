/* A loader ends or rests once all living trainers have left it. No MPI: the test determines what comes. */
#include "loader/loader.h"

#include <pthread.h>
#include <string.h>

#include "check.h"
#include "job/job.h"
#include "job/link.h"
#include "parcel/inbox.h"

enum { TRAINERS = 3, NOTHING = -1 };

/* What comes next, in one round of the loader's thread: a parcel of a trainer, a trainer's death, or both. */
static struct {
    int from;
    uint32_t kind;
    int dead;
} comes = {NOTHING, 0, NOTHING};
static int here; /* not taken yet */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t taken = PTHREAD_COND_INITIALIZER;
static mpidata_parcel_list come;
static int lost[TRAINERS], events, dying;

/* -- in place of the job, its links and its messages --------------------------------------------------------------- */

#ifdef OPEN_MPI /* there it is a function that must not be called before MPI_Init */
MPI_Comm MPI_Comm_f2c(MPI_Fint comm) {
    (void)comm;
    return MPI_COMM_WORLD;
}
#endif

int MPI_Query_thread(int *level) {
    *level = MPI_THREAD_MULTIPLE;
    return MPI_SUCCESS;
}

int mpidata_job_join(MPI_Comm world, int kind, const char *plan_text, mpidata_job *job) {
    (void)plan_text;
    *job = (mpidata_job){.data = world, .kind = kind, .plan = {.trainers = TRAINERS, .trainers_at_least = 1}};
    return MPIDATA_SUCCESS;
}

void mpidata_job_leave(mpidata_job *job) { (void)job; }

void mpidata_job_left(void) {}

int mpidata_job_listen(mpidata_job *job) {
    (void)job;
    return MPIDATA_SUCCESS;
}

int mpidata_job_send_event(mpidata_job *job, const mpidata_event *event) {
    (void)job;
    events += event->kind == MPIDATA_EVENT_NEXT;
    return MPIDATA_SUCCESS;
}

int mpidata_link_open_world(mpidata_link *link, MPI_Comm comm, const mpidata_plan *plan) {
    *link = (mpidata_link){.comm = comm, .n_loaders = 1, .n_trainers = plan->trainers, .n_ranks = 2 + plan->trainers};
    link->dead = calloc(2 + TRAINERS, 1);
    link->newly = calloc(2 + TRAINERS, sizeof *link->newly);
    CHECK(link->dead && link->newly);
    return MPIDATA_SUCCESS;
}

int mpidata_link_deaths(mpidata_link *link) {
    link->n_newly = 1;
    link->newly[0] = 1 + dying;
    return MPIDATA_SUCCESS;
}

mpidata_inbox *mpidata_inbox_open(MPI_Comm comm, int tag, const int *peers, int n_ranks) {
    (void)comm, (void)tag, (void)peers, (void)n_ranks;
    return calloc(1, 1);
}

void mpidata_inbox_close(mpidata_inbox *inbox) { free(inbox); }

void mpidata_inbox_lose(mpidata_inbox *inbox, int rank) {
    (void)inbox;
    lost[rank - 1]++;
}

int mpidata_inbox_take(mpidata_inbox *inbox, mpidata_transfers *transfers, int *from, int *did) {
    (void)inbox, (void)transfers, (void)from;
    int status = MPIDATA_SUCCESS;
    (void)pthread_mutex_lock(&mutex);
    if (here) {
        *did = 1;
        if (comes.from != NOTHING) {
            mpidata_parcel *parcel = calloc(1, sizeof *parcel);
            CHECK(parcel);
            parcel->peer = comes.from;
            parcel->head.kind = comes.kind;
            mpidata_parcels_append(&come, parcel);
        }
        dying = comes.dead;
        if (comes.dead != NOTHING) status = MPIDATA_ERR_DIED;
        here = 0;
        (void)pthread_cond_signal(&taken);
    }
    (void)pthread_mutex_unlock(&mutex);
    return status;
}

void mpidata_inbox_whole(mpidata_inbox *inbox, mpidata_parcel_list *whole) {
    (void)inbox;
    for (mpidata_parcel *parcel; (parcel = mpidata_parcels_pop(&come));) mpidata_parcels_append(whole, parcel);
}

/* -- the test --------------------------------------------------------------------------------------------------------- */

/* Let this come, and wait until the loader's thread has handed over what came before. */
static void let_come(int from, uint32_t kind, int dead) {
    (void)pthread_mutex_lock(&mutex);
    comes.from = from, comes.kind = kind, comes.dead = dead;
    here = 1;
    while (here) (void)pthread_cond_wait(&taken, &mutex);
    (void)pthread_mutex_unlock(&mutex);
}

static void farewell(int trainer) { let_come(trainer, MPIDATA_PARCEL_FAREWELL, NOTHING); }
static void die(int trainer) { let_come(NOTHING, 0, trainer); }

/* The loader waits for requests, also after it has taken all that came. */
static int goes_on(void) {
    let_come(NOTHING, 0, NOTHING);
    mpidata_taken request;
    return mpidata_loader_next(&request, 1e-3) == MPIDATA_ERR_AGAIN;
}

static int ends(void) {
    mpidata_taken request;
    return mpidata_loader_next(&request, 60.0) == MPIDATA_END;
}

static void opened(void) {
    CHECK(mpidata_loader_open(0, MPIDATA_ROLE_LOADER) == MPIDATA_SUCCESS && mpidata_loader_begin() == MPIDATA_SUCCESS && goes_on());
    memset(lost, 0, sizeof lost);
}

static void closed(void) { CHECK(mpidata_loader_close() == MPIDATA_SUCCESS); }

static void a_dead_trainer_says_no_farewell(void) {
    opened();
    farewell(2);
    die(1);
    CHECK(goes_on() && lost[1] == 1);
    farewell(0);
    CHECK(ends());
    closed();
}

static void one_that_dies_after_its_farewell_counts_once(void) {
    opened();
    farewell(1);
    die(1);
    farewell(0);
    CHECK(goes_on());
    farewell(0);
    CHECK(goes_on());
    farewell(2);
    CHECK(ends());
    closed();
}

/* A message complete before the death is handed over after it. */
static void a_farewell_that_comes_with_the_death_counts_once(void) {
    opened();
    let_come(1, MPIDATA_PARCEL_FAREWELL, 1);
    farewell(0);
    CHECK(goes_on());
    farewell(2);
    CHECK(ends());
    closed();
}

static void a_loader_that_rested_waits_for_the_living(void) {
    opened();
    farewell(0);
    farewell(2);
    die(1);
    CHECK(ends());
    int before = events;
    CHECK(mpidata_loader_rest() == MPIDATA_SUCCESS && events == before + 1 && goes_on());
    farewell(0);
    CHECK(goes_on());
    die(2);
    CHECK(ends());
    closed();
}

static void requests_before_a_farewell_come_first(void) {
    mpidata_taken request;
    opened();
    let_come(2, MPIDATA_PARCEL_FAREWELL - 1, NOTHING);
    for (int trainer = 0; trainer < TRAINERS; trainer++) farewell(trainer);
    let_come(NOTHING, 0, NOTHING);
    CHECK(mpidata_loader_next(&request, 60.0) == MPIDATA_SUCCESS && request.peer == 2);
    CHECK(ends());
    closed();
}

/* Without a ticket, the end of a large answer would not be reported. */
static void an_answer_without_a_ticket_is_small(void) {
    static const char large[MPIDATA_PIECE_SMALL + 1];
    const mpidata_taken request = {.peer = 1};
    const void *const parts[] = {large};
    const int64_t size = sizeof large;
    opened();
    CHECK(mpidata_loader_answer(&request, 0, 1, parts, &size, -1) == MPIDATA_ERR_ARGUMENT);
    closed();
}

int main(void) {
    an_answer_without_a_ticket_is_small();
    a_dead_trainer_says_no_farewell();
    one_that_dies_after_its_farewell_counts_once();
    a_farewell_that_comes_with_the_death_counts_once();
    a_loader_that_rested_waits_for_the_living();
    requests_before_a_farewell_come_first();
    return 0;
}
