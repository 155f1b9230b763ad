/* mpidata-carrier RANKS WORDS [launcher ...] program [argument ...]: a rank of the job for a program that is none.
 *
 * It is started by mpidata-rank, joins the job as a solver, and starts the program, by the launcher (of so many words)
 * where there is one. The program has RANKS ranks, which attach here. What they put is sent as this rank's own. The death
 * of the program is the failure of a try: the program is started anew, and this rank stays.
 *
 * One thread does all. It sleeps in ppoll, and no longer than a moment while MPI has something under way. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/beat.h"
#include "base/deadlines.h"
#include "base/wait.h"
#include "carrier.h"
#include "family.h"
#include "job/run_files.h"
#include "solver/solver.h"

enum { FRUITLESS = 3, IDLE_MS = 100, SINK_NS = 50000 };
static const double HURRY_EVERY_S = 1;
static const double GRACE_S = 5; /* for a launcher to notice that a rank has ended */

typedef struct {
    ranks_t ranks;
    program_t program;
    command_t command;
    case_t own_case;
    int group;
    int64_t simulation;
    int pending;   /* it was taken for a program that has not been started, or has not asked yet */
    int open;      /* the program runs it */
    int steps;     /* whether it has made one */
    int over;      /* there are no more simulations, or the job is stopping */
    int finalized; /* all ranks of the program have */
    int whole;     /* all have attached */
    int took;      /* a simulation, in this start */
    int fruitless; /* starts in a row in which that was not so */
    double began, gone_since, ended_since, looked, continued;
    mpidata_backoff backoff;
} carrier_t;

static void answer_all(carrier_t *carrier, int status, const char *sentence) {
    for (int i = 0; i < carrier->ranks.n; i++)
        if (carrier->ranks.all[i].asks) ranks_answer(&carrier->ranks.all[i], status, sentence);
}

/* The last error is one that another try would meet again. */
static int end_job(int status) {
    const struct timespec moment = {.tv_sec = MPIDATA_AFTER_ERROR_MS / 1000};
    char sentence[MPIDATA_TEXT_MAX];
    (void)snprintf(sentence, sizeof sentence, "%s", mpidata_last_error());
    (void)mpidata_report_error(sentence);
    (void)nanosleep(&moment, NULL); /* dying first would end the job before the scheduler has told why */
    return mpidata_error(status, "%s", sentence);
}

/* -- requests ------------------------------------------------------------------------------------------------------- */

static int take_simulation(carrier_t *carrier) {
    if (carrier->pending) return MPIDATA_SUCCESS;
    const int status = carrier->over ? MPIDATA_END : mpidata_next(&carrier->simulation);
    carrier->pending = status == MPIDATA_SUCCESS;
    carrier->over |= status == MPIDATA_END;
    return status;
}

static void hand_over(carrier_t *carrier) {
    ranks_t *ranks = &carrier->ranks;
    const size_t bytes = (size_t)ranks->plan->n_parameters * sizeof(double);
    for (int i = 0; i < ranks->n; i++) {
        mpidata_carried *shared = ranks->all[i].shared;
        if (!shared) continue;
        memcpy((char *)shared + ranks->parameters_at, mpidata_solver_parameters(), bytes);
        shared->simulation = carrier->simulation;
    }
    carrier->pending = carrier->steps = 0;
    carrier->open = carrier->took = 1;
}

static int answer_next(carrier_t *carrier) {
    carrier->open = 0;
    const int one_each = carrier->ranks.plan->carried_each && !carrier->pending;
    const int status = one_each ? MPIDATA_END : take_simulation(carrier);
    if (status > MPIDATA_END) return status;
    if (status == MPIDATA_SUCCESS) hand_over(carrier);
    answer_all(carrier, status, "");
    return MPIDATA_SUCCESS;
}

static int answer_fail(carrier_t *carrier, int how) {
    char reason[MPIDATA_CARRIED_SENTENCE] = "";
    for (int i = carrier->ranks.n - 1; i >= 0; i--)
        if (carrier->ranks.all[i].shared) memcpy(reason, carrier->ranks.all[i].shared->reason, sizeof reason);
    reason[sizeof reason - 1] = '\0';
    const int status = how == MPIDATA_CARRIED_FAIL ? mpidata_fail(reason) : mpidata_fail_try(reason);
    if (status > MPIDATA_END) return status;
    carrier->open = 0;
    answer_all(carrier, status, "");
    return MPIDATA_SUCCESS;
}

/* A rank has found an error that ends the job. */
static int pass_error_on(carrier_t *carrier, const rank_t *rank) {
    char sentence[MPIDATA_CARRIED_SENTENCE];
    memcpy(sentence, rank->shared->reason, sizeof sentence);
    sentence[sizeof sentence - 1] = '\0';
    answer_all(carrier, MPIDATA_SUCCESS, "");
    (void)mpidata_error(MPIDATA_ERR_ORDER, "%s", sentence);
    return end_job(MPIDATA_ERR_ORDER);
}

static int refuse(carrier_t *carrier, int status, const char *what, const char *advice) {
    (void)mpidata_error(status, "%s. %s, simulation %lld. %s", what, carrier->ranks.who, (long long)carrier->simulation, advice);
    return end_job(status);
}

/* All ranks of the program ask, but not for the same; or one asks while another has made a step. */
static int check_alike(carrier_t *carrier) {
    const ranks_t *ranks = &carrier->ranks;
    int ask = 0, ahead = 0;
    for (int i = 0; i < ranks->n; i++) {
        const rank_t *rank = &ranks->all[i];
        ask += rank->asks != 0;
        ahead += rank->shared && !rank->asks && MPIDATA_CARRIED_GET(rank->shared->committed) != rank->taken;
    }
    if (ask == ranks->room)
        return refuse(carrier, MPIDATA_ERR_ORDER, "The ranks of the carried program call different functions at the same point",
                      "mpidata_next, mpidata_fail and mpidata_finalize are called by all ranks, in the same order.");
    if (ask && ask + ahead == ranks->room)
        return refuse(carrier, MPIDATA_ERR_ORDER, "The ranks of the carried program make different numbers of steps",
                      "Call mpidata_step on all ranks of the program equally often.");
    return MPIDATA_SUCCESS;
}

static int answer_requests(carrier_t *carrier) {
    ranks_t *ranks = &carrier->ranks;
    for (int i = 0; i < ranks->n; i++)
        if (ranks->all[i].asks == MPIDATA_CARRIED_ERROR) return pass_error_on(carrier, &ranks->all[i]);
    if (ranks_all_ask(ranks, MPIDATA_CARRIED_NEXT)) return answer_next(carrier);
    if (ranks_all_ask(ranks, MPIDATA_CARRIED_FAIL)) return answer_fail(carrier, MPIDATA_CARRIED_FAIL);
    if (ranks_all_ask(ranks, MPIDATA_CARRIED_FAIL_TRY)) return answer_fail(carrier, MPIDATA_CARRIED_FAIL_TRY);
    if (ranks_all_ask(ranks, MPIDATA_CARRIED_FINALIZE)) {
        for (int i = 0; i < ranks->n; i++) ranks->all[i].left = 1;
        carrier->open = 0;
        carrier->finalized = 1;
        answer_all(carrier, MPIDATA_SUCCESS, "");
        return MPIDATA_SUCCESS;
    }
    if (!carrier->over) return check_alike(carrier);
    for (int i = 0; i < ranks->n; i++) { /* the job is stopping: each leaves where it is */
        rank_t *rank = &ranks->all[i];
        if (!rank->asks) continue;
        rank->left |= rank->asks == MPIDATA_CARRIED_FINALIZE;
        ranks_answer(rank, rank->left ? MPIDATA_SUCCESS : MPIDATA_END, "");
    }
    carrier->finalized = ranks_left(ranks) == ranks->room;
    return MPIDATA_SUCCESS;
}

/* -- one start of the program --------------------------------------------------------------------------------------- */

static int start_with(carrier_t *carrier, char ***variables, char ***placeholders, char ***arguments) {
    const mpidata_plan *plan = carrier->ranks.plan;
    command_t command = carrier->command;
    MPIDATA_TRY(words_of_start(&carrier->ranks, carrier->group, variables));
    if (plan->carried_each) {
        MPIDATA_TRY(words_of_simulation(plan, carrier->simulation, mpidata_solver_parameters(), variables, placeholders));
        MPIDATA_TRY(words_of_case(&carrier->ranks, carrier->group, placeholders));
        MPIDATA_TRY(words_fill(command.arguments, 1 << 20, *placeholders, arguments));
        command.arguments = *arguments;
        MPIDATA_TRY(case_make(&carrier->own_case, carrier->simulation, carrier->group, *placeholders));
        if (*carrier->own_case.path) command.folder = carrier->own_case.path;
    }
    return program_start(&carrier->program, &command, *variables);
}

static int start(carrier_t *carrier) {
    char **variables = NULL, **placeholders = NULL, **arguments = NULL;
    carrier->whole = carrier->finalized = carrier->took = 0;
    carrier->gone_since = carrier->ended_since = 0;
    carrier->began = carrier->looked = mpidata_now();
    const int status = start_with(carrier, &variables, &placeholders, &arguments);
    words_free(variables);
    words_free(placeholders);
    words_free(arguments);
    return status ? end_job(status) : MPIDATA_SUCCESS;
}

/* What stops this process for long, in MPI because trainers are slow say, is no silence of the program. */
static double now_after_pause(carrier_t *carrier) {
    const double now = mpidata_now();
    if (now - carrier->looked > 1) {
        carrier->began += now - carrier->looked;
        for (int i = 0; i < carrier->ranks.n; i++) carrier->ranks.all[i].alive = now;
    }
    return carrier->looked = now;
}

/* Whether its launcher does not end though all ranks have, for long. */
static int outlives_ranks(carrier_t *carrier, double now) {
    if (!carrier->whole || !ranks_have_ended(&carrier->ranks)) carrier->ended_since = 0;
    else if (!carrier->ended_since) carrier->ended_since = now;
    return carrier->ended_since && now - carrier->ended_since > GRACE_S;
}

/* Its ranks have nothing more for the job, but as long as it runs it holds up others. */
static void hurry(carrier_t *carrier, double now) {
    if (!carrier->finalized || now - carrier->continued < HURRY_EVERY_S) return;
    carrier->continued = now;
    continue_family();
}

/* Why the program has to be ended, as far as its signs of life tell; NULL: it need not. */
static const char *hung(carrier_t *carrier, double now) {
    static char reason[160];
    const ranks_t *ranks = &carrier->ranks;
    const mpidata_plan *plan = ranks->plan;
    const double allowed = carrier->steps ? plan->timeout_s : plan->start_timeout_s;
    int gone = 0;
    for (int i = 0; i < ranks->n; i++) {
        const rank_t *rank = &ranks->all[i];
        gone |= rank->gone && !rank->left;
        if (!rank->shared || rank->gone || rank->left || now - rank->alive <= allowed) continue;
        snprintf(reason, sizeof reason, "was silent for %.1f s, longer than solvers.%s allows, and was ended",
                 now - rank->alive, carrier->steps ? "timeout_s" : "start_timeout_s");
        return reason;
    }
    if (outlives_ranks(carrier, now)) return "did not end after its ranks, and was ended";
    if (gone && !carrier->gone_since) carrier->gone_since = now;
    if (gone && now - carrier->gone_since > GRACE_S) return "lost a rank, and was ended";
    if (carrier->whole || now - carrier->began <= plan->start_timeout_s) return NULL;
    snprintf(reason, sizeof reason, "has not called mpidata_attach on all its ranks (%d of %d have) within "
             "solvers.start_timeout_s, and was ended", ranks_attached(ranks), ranks->room);
    return reason;
}

/* Sleep until there is something to do. */
static int rest(carrier_t *carrier, int under_way) {
    struct pollfd *polled = calloc((size_t)carrier->ranks.n + 2, sizeof *polled);
    if (!polled) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the carrier.");
    nfds_t n = (nfds_t)ranks_poll(&carrier->ranks, polled);
    polled[n++] = (struct pollfd){.fd = carrier->program.descriptor, .events = POLLIN};
    struct timespec time = {.tv_nsec = under_way ? mpidata_backoff_next(&carrier->backoff) : IDLE_MS * 1000000L};
    const int sinks = time.tv_nsec > SINK_NS;
    if (sinks) ranks_sleep(&carrier->ranks, 1);
    if (!ranks_have_news(&carrier->ranks)) (void)ppoll(polled, n, &time, NULL);
    if (sinks) ranks_sleep(&carrier->ranks, 0);
    free(polled);
    return MPIDATA_SUCCESS;
}

/* What the ranks have put and asked; *sent: whether there was a sample. */
static int take(carrier_t *carrier, double now, int *sent) {
    ranks_t *ranks = &carrier->ranks;
    const char *wrong = ranks_take(ranks, now);
    if (wrong) return refuse(carrier, MPIDATA_ERR_WIRE, wrong, "Use one version of mpidata.");
    carrier->whole |= ranks_attached(ranks) == ranks->room;
    *sent = 0;
    const int status = carrier->over ? MPIDATA_END : send_samples(ranks, sent);
    if (status > MPIDATA_END) return status;
    carrier->over |= status == MPIDATA_END;
    carrier->steps |= *sent;
    if (carrier->over) ranks_stop(ranks);
    return answer_requests(carrier);
}

/* Start the program, and serve it until it has ended, or *reason says why it has to be ended, or the job needs it no more. */
static int run(carrier_t *carrier, const char **reason) {
    *reason = NULL;
    MPIDATA_TRY(start(carrier));
    while (!carrier->over || !carrier->finalized) {
        int sent, stopping, under_way;
        const int ended = program_has_ended(&carrier->program); /* before the last look at what it has left */
        const double now = now_after_pause(carrier);
        MPIDATA_TRY(take(carrier, now, &sent));
        if (ended || (*reason = hung(carrier, now))) break;
        hurry(carrier, now);
        MPIDATA_TRY(mpidata_solver_look(&stopping, &under_way));
        carrier->over |= stopping;
        give_slots_back(&carrier->ranks);
        if (sent) carrier->backoff.idle = 0;
        else MPIDATA_TRY(rest(carrier, under_way));
    }
    return MPIDATA_SUCCESS;
}

/* The simulation of a program that has died goes back to the scheduler. */
static int give_simulation_back(carrier_t *carrier, const char *how) {
    const int status = mpidata_fail_try(how);
    carrier->open = carrier->pending = 0;
    carrier->over |= status == MPIDATA_END;
    return status == MPIDATA_END ? MPIDATA_SUCCESS : status;
}

/* After an end of the program, when the job goes on. */
static int begin_anew(carrier_t *carrier, const char *reason) {
    char how[256];
    ranks_t *ranks = &carrier->ranks;
    const int status = carrier->program.status, well = !reason && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    program_end(&carrier->program, ranks);
    socket_clean(ranks);
    (void)snprintf(how, sizeof how, "%s%s", reason ? reason : "ended with ", reason ? "" : program_how(&carrier->program));
    carrier->fruitless = carrier->took ? 0 : carrier->fruitless + 1;
    if (!well || carrier->open) (void)fprintf(stderr, "mpidata: %s: its program %s. It is started again.\n", ranks->who, how);
    case_end(&carrier->own_case, !well || carrier->open);
    if (carrier->open || (carrier->pending && !well)) MPIDATA_TRY(give_simulation_back(carrier, how));
    if (carrier->fruitless == FRUITLESS)
        return mpidata_error(MPIDATA_ERR_JOB, "The carried program was started %d times in a row without asking for a "
                                              "simulation; the last time, it %s.", FRUITLESS, how);
    MPIDATA_TRY(mpidata_wait()); /* until MPI reads no more from the memory of its ranks */
    ranks_forget(ranks);
    MPIDATA_TRY(socket_renew_token(ranks));
    const int next = take_simulation(carrier);
    return next == MPIDATA_END ? MPIDATA_SUCCESS : next;
}

static int serve(carrier_t *carrier) {
    const int first = carrier->ranks.plan->carried_each ? take_simulation(carrier) : MPIDATA_SUCCESS;
    if (first > MPIDATA_END) return first;
    while (!carrier->over) {
        const char *reason;
        MPIDATA_TRY(run(carrier, &reason));
        if (reason) program_end(&carrier->program, &carrier->ranks);
        if (!carrier->over) MPIDATA_TRY(begin_anew(carrier, reason));
    }
    return MPIDATA_SUCCESS;
}

/* -- the process ---------------------------------------------------------------------------------------------------- */

static char *read_plan(const char *folder) {
    char path[4096], *text = NULL;
    size_t room = 0;
    (void)snprintf(path, sizeof path, "%s/" MPIDATA_RUN_PLAN, folder);
    FILE *file = fopen(path, "re");
    if (!file || getdelim(&text, &room, 0, file) <= 0) text = NULL;
    if (file) fclose(file);
    return text;
}

static int open_carrier(carrier_t *carrier, int room) {
    ranks_t *ranks = &carrier->ranks;
    MPI_Comm group;
    const int status = mpidata_init(MPI_COMM_WORLD, &group); /* which says itself what is wrong */
    if (status) return status;
    ranks->room = room;
    ranks->plan = mpidata_solver_plan();
    carrier->group = mpidata_solver_who(ranks->who, sizeof ranks->who);
    ranks->plan_text = ranks->plan->run ? read_plan(ranks->plan->run) : NULL;
    if (!ranks->plan_text) return mpidata_error(MPIDATA_ERR_JOB, "The carrier cannot read the plan of the job.");
    ranks_lay_out(ranks);
    int trouble = case_read(&carrier->own_case, ranks->plan->run);
    if (!trouble) trouble = memory_check(ranks);
    if (!trouble) trouble = socket_open(ranks, carrier->group);
    return trouble ? end_job(trouble) : MPIDATA_SUCCESS;
}

/* The program may have more to do; the job does not wait for it. */
static void wait_for_program(carrier_t *carrier) {
    while (!program_has_ended(&carrier->program) && !outlives_ranks(carrier, mpidata_now())) {
        struct pollfd ended = {.fd = carrier->program.descriptor, .events = POLLIN};
        hurry(carrier, mpidata_now());
        (void)poll(&ended, 1, IDLE_MS);
    }
}

int main(int argc, char **argv) {
    static carrier_t carrier = {.ranks = {.listener = -1, .folder = -1, .memory = -1}, .program = {.descriptor = -1}};
    const int room = argc > 3 ? atoi(argv[1]) : 0, words = argc > 3 ? atoi(argv[2]) : -1;
    if (room < 1 || words < 0 || argc < 4 + words) {
        (void)fprintf(stderr, "mpidata: mpidata-carrier is started by `mpidata run` alone.\n");
        return 2;
    }
    carrier.command = (command_t){.n_launcher = words, .arguments = argv + 3 + words};
    int status = words_of_launcher(argv + 3, words, &carrier.command.launcher);
    adopt_orphans();
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
    if (!status) status = open_carrier(&carrier, room);
    if (!status) status = serve(&carrier);
    if (!status) status = mpidata_finalize();
    if (status) {
        (void)fprintf(stderr, "mpidata: %s\n", mpidata_last_error());
        program_end(&carrier.program, &carrier.ranks);
        case_end(&carrier.own_case, 1);
        socket_close(&carrier.ranks);
        _exit(1);
    }
    wait_for_program(&carrier);
    program_end(&carrier.program, &carrier.ranks);
    case_end(&carrier.own_case, 0);
    socket_close(&carrier.ranks);
    ranks_forget(&carrier.ranks);
    return MPI_Finalize() != MPI_SUCCESS;
}
