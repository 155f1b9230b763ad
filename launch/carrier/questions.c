/* Questions of the program's ranks to inference ranks: each is sent from the shared memory where the rank has written it, and
 * its answer is received there. Other requests and samples of the ranks are served meanwhile. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "carrier.h"
#include "question/in_memory.h"
#include "solver/solver.h"
#include "system/available_memory.h"

enum { MOST_OPEN = 256, LEAST_BYTES = 65536 };
/* How long a stopping job still waits for answers. */
static const double PATIENT_S = 1.0;

static const char AGAIN[] = "A rank of the carried program has asked again before it was answered";

int questions_open(const ranks_t *ranks) { return ranks->questions && mpidata_questions_any(ranks->questions); }

static void answer(rank_t *rank, int place, int status) {
    mpidata_carried_answer *there = &rank->shared->answers[place];
    rank->asking->places[place].number = 0;
    there->status = status;
    there->version = rank->asking->places[place].version;
    MPIDATA_CARRIED_SET(there->answered, rank->asking->places[place].asked);
    ranks_wake(rank);
}

static int cannot(const carrier_t *carrier, uint64_t bytes) {
    (void)mpidata_error(MPIDATA_ERR_MEMORY, "A question of the carried program takes %.1f GB, which cannot be shared with its carrier. "
                                            "%s, simulation %lld. Send fewer rows at once, or give the job more memory.",
                        (double)bytes / 1e9, carrier->ranks.who, (long long)carrier->simulation);
    return end_job(MPIDATA_ERR_MEMORY);
}

/* The memory of a place doubles as its questions grow, so that few of them wait for memory. */
static int make_room(carrier_t *carrier, rank_t *rank, int place, uint64_t wants) {
    uint64_t bytes = LEAST_BYTES;
    void *mapped;
    const int64_t available = mpidata_available_memory("/proc", "/sys/fs/cgroup", NULL);
    if (available >= 0 && wants > (uint64_t)available) return cannot(carrier, wants);
    while (bytes < wants && bytes < UINT64_MAX / 4) bytes *= 2;
    const int memory = ranks_make_memory("mpidata-question", bytes, &mapped);
    if (memory < 0) return cannot(carrier, wants);
    if (rank->asking->places[place].memory) (void)munmap(rank->asking->places[place].memory, rank->asking->places[place].bytes);
    rank->asking->places[place].memory = mapped;
    rank->asking->places[place].bytes = bytes;
    (void)ranks_send(rank, &(char){MPIDATA_CARRIED_ROOM}, 1, memory); /* else it has ended, as is found elsewhere */
    (void)close(memory);
    MPIDATA_CARRIED_SET(rank->shared->answers[place].room, bytes);
    ranks_wake(rank);
    return MPIDATA_SUCCESS;
}

/* Send the question that a rank has written; later, if too many are open. */
static int ask(carrier_t *carrier, rank_t *rank, int place) {
    ranks_t *ranks = &carrier->ranks;
    asking_t *asking = rank->asking;
    mpidata_read_question read;
    const int most = ranks->room < MOST_OPEN / MPIDATA_CARRIED_QUESTIONS ? ranks->room * MPIDATA_CARRIED_QUESTIONS : MOST_OPEN;
    if (!ranks->questions && !(ranks->questions = mpidata_solver_questions(most)))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for questions.");
    if (mpidata_questions_full(ranks->questions)) return MPIDATA_SUCCESS;
    asking->places[place].asked++;
    if (mpidata_question_read(asking->places[place].memory, asking->places[place].bytes, &read))
        return refuse(carrier, MPIDATA_ERR_WIRE, mpidata_last_error(), "Use one version of mpidata.");
    return mpidata_questions_begin(ranks->questions, read.arrays, read.head.n_in, read.arrays + read.head.n_in, read.head.n_out,
                                   &asking->places[place].version, &asking->places[place].number);
}

/* Read what a rank has written about a place. In this order: it requests room before it asks. */
static int look_at(carrier_t *carrier, rank_t *rank, int place, int *did) {
    const mpidata_carried_question *there = &rank->shared->questions[place];
    const uint64_t asked = MPIDATA_CARRIED_GET(there->asked), wants = MPIDATA_CARRIED_GET(there->wants);
    if (!rank->asking && !asked && !wants) return MPIDATA_SUCCESS;
    if (!rank->asking && !(rank->asking = calloc(1, sizeof *rank->asking)))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for questions.");
    const uint64_t seen = rank->asking->places[place].asked, room = rank->asking->places[place].bytes;
    if (asked == seen && wants <= room) return MPIDATA_SUCCESS;
    if (rank->asking->places[place].number || (asked != seen && (asked != seen + 1 || wants > room)))
        return refuse(carrier, MPIDATA_ERR_WIRE, AGAIN, "Use one version of mpidata.");
    *did = 1;
    if (wants > room) return make_room(carrier, rank, place, wants);
    if (!carrier->over) return ask(carrier, rank, place);
    rank->asking->places[place].asked = asked;
    answer(rank, place, MPIDATA_END);
    return MPIDATA_SUCCESS;
}

/* If the job is stopping, nobody may be left to answer. */
static int gives_up(carrier_t *carrier, int64_t number) {
    if (!carrier->over) return 0;
    if (carrier->over_since == 0) carrier->over_since = mpidata_now();
    if (mpidata_questions_has_answerer(carrier->ranks.questions) && mpidata_now() - carrier->over_since < PATIENT_S) return 0;
    return mpidata_questions_give_up(carrier->ranks.questions, number);
}

static void answer_what_has_ended(carrier_t *carrier, rank_t *rank, int *did) {
    for (int place = 0; place < MPIDATA_CARRIED_QUESTIONS; place++) {
        const int64_t number = rank->asking->places[place].number;
        if (!number) continue;
        const int ended = mpidata_questions_ended(carrier->ranks.questions, number);
        if (!ended && !gives_up(carrier, number)) continue;
        answer(rank, place, ended ? MPIDATA_SUCCESS : MPIDATA_END);
        *did = 1;
    }
}

static void free_asking(asking_t *asking) {
    for (int place = 0; place < MPIDATA_CARRIED_QUESTIONS; place++)
        if (asking->places[place].memory) (void)munmap(asking->places[place].memory, asking->places[place].bytes);
    free(asking);
}

/* Whether MPI no longer reads from the memory of questions that nobody waits for. */
static int has_left(mpidata_questions *questions, asking_t *asking) {
    int open = 0;
    for (int place = 0; place < MPIDATA_CARRIED_QUESTIONS; place++) {
        int64_t *number = &asking->places[place].number;
        if (*number && mpidata_questions_give_up(questions, *number)) *number = 0;
        open |= *number != 0;
    }
    return !open;
}

static void free_left(ranks_t *ranks) {
    for (asking_t **at = &ranks->left; *at;) {
        asking_t *one = *at;
        if (!has_left(ranks->questions, one)) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        free_asking(one);
    }
}

int questions_serve(void *context) {
    carrier_t *carrier = context;
    ranks_t *ranks = &carrier->ranks;
    int did = 0;
    for (int i = 0; i < ranks->n; i++)
        for (int place = 0; place < MPIDATA_CARRIED_QUESTIONS && ranks->all[i].shared; place++)
            MPIDATA_TRY(look_at(carrier, &ranks->all[i], place, &did));
    if (questions_open(ranks)) {
        MPIDATA_TRY(mpidata_questions_round(ranks->questions, &did));
        for (int i = 0; i < ranks->n; i++)
            if (ranks->all[i].asking) answer_what_has_ended(carrier, &ranks->all[i], &did);
        free_left(ranks);
    }
    if (did) carrier->backoff.idle = 0;
    carrier->counted = mpidata_now();
    return MPIDATA_SUCCESS;
}

int questions_have_news(const ranks_t *ranks) {
    if (!ranks->plan->inference || (ranks->questions && mpidata_questions_full(ranks->questions))) return 0;
    for (int i = 0; i < ranks->n; i++) {
        const rank_t *rank = &ranks->all[i];
        for (int place = 0; place < MPIDATA_CARRIED_QUESTIONS && rank->shared; place++) {
            const mpidata_carried_question *there = &rank->shared->questions[place];
            const uint64_t seen = rank->asking ? rank->asking->places[place].asked : 0, room = rank->asking ? rank->asking->places[place].bytes : 0;
            if (MPIDATA_CARRIED_GET(there->asked) != seen || MPIDATA_CARRIED_GET(there->wants) > room) return 1;
        }
    }
    return 0;
}

/* The trainers are told how long rank 0 of a group waits. The waits of this process within a call are counted there: they are
 * not in the time since questions_serve, which is called until then. */
void questions_count_wait(carrier_t *carrier) {
    const ranks_t *ranks = &carrier->ranks;
    const double now = mpidata_now();
    const int waits = ranks->n && ranks->all[0].shared && MPIDATA_CARRIED_GET(ranks->all[0].shared->waits);
    if (waits && carrier->waits) mpidata_solver_has_waited(now - carrier->counted);
    carrier->waits = waits;
    carrier->counted = now;
}

void questions_leave(ranks_t *ranks, rank_t *rank) {
    asking_t *asking = rank->asking;
    rank->asking = NULL;
    if (!asking) return;
    asking->next = ranks->left;
    ranks->left = asking;
    free_left(ranks);
}

/* Memory that MPI may still read stays until the process ends. */
void questions_close(ranks_t *ranks) {
    mpidata_solver_meanwhile(NULL, NULL);
    mpidata_questions_close(ranks->questions);
    for (int i = 0; i < ranks->n; i++) ranks->all[i].asking = NULL;
    ranks->questions = NULL;
    ranks->left = NULL;
}
