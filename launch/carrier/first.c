/* The first carrier of a group, usually the only one: it starts the program, and decides by the views of all carriers. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "carrier.h"
#include "containers/text_list.h"
#include "solver/solver.h"

enum { FRUITLESS = 3 };
static const double GRACE_S = 5; /* for a launcher to notice that a rank has ended */

/* -- requests of the ranks ------------------------------------------------------------------------------------------ */

static int all_ask(const carrier_t *carrier, const view_t *sum, int what) {
    return sum->asks[what - 1] == carrier->ranks.room;
}

/* All ranks of the program have made a request, but different ones; or one has, and another has made a step. */
static int check_alike(carrier_t *carrier, const view_t *sum) {
    int ask = 0;
    for (int what = 0; what < MPIDATA_CARRIED_ERROR; what++) ask += sum->asks[what];
    if (ask == carrier->ranks.room)
        return refuse(carrier, MPIDATA_ERR_ORDER, "The ranks of the carried program call different functions at the same point",
                      "mpidata_next, mpidata_refresh, mpidata_fail and mpidata_finalize are called by all ranks, in the same order.");
    if (ask && ask + sum->ahead == carrier->ranks.room)
        return refuse(carrier, MPIDATA_ERR_ORDER, "The ranks of the carried program make different numbers of steps",
                      "Call mpidata_step on all ranks of the program equally often.");
    return MPIDATA_SUCCESS;
}

static int answer_requests(carrier_t *carrier, const view_t *sum) {
    if (sum->orders < carrier->others.orders) return MPIDATA_SUCCESS; /* some may have been answered meanwhile */
    if (all_ask(carrier, sum, MPIDATA_CARRIED_NEXT)) return give_order(carrier, ORDER_NEXT, 0, NULL);
    if (all_ask(carrier, sum, MPIDATA_CARRIED_FAIL)) return give_order(carrier, ORDER_FAIL, 0, sum->reason);
    if (all_ask(carrier, sum, MPIDATA_CARRIED_FAIL_TRY)) return give_order(carrier, ORDER_FAIL_TRY, 0, sum->reason);
    if (all_ask(carrier, sum, MPIDATA_CARRIED_REFRESH)) return give_order(carrier, ORDER_REFRESH, 0, NULL);
    if (all_ask(carrier, sum, MPIDATA_CARRIED_FINALIZE)) {
        carrier->finalized = 1;
        return give_order(carrier, ORDER_FINALIZE, 0, NULL);
    }
    return check_alike(carrier, sum);
}

static int check_blocks(carrier_t *carrier) {
    char what[MPIDATA_CARRIED_SENTENCE];
    if (carrier->ranks.sent || !ranks_put_the_same(&carrier->ranks, what, sizeof what)) return MPIDATA_SUCCESS;
    return refuse(carrier, MPIDATA_ERR_BLOCK, what,
                  "Let one of them do so, or each put its own part. If each of them is rank 0 of 1, they were not started "
                  "by the mpirun of their MPI: give that mpirun as solvers.carried.launcher.");
}

/* Send what all ranks have committed; *sent: whether there was a sample. */
static int send_on(carrier_t *carrier, const view_t *sum, int *sent) {
    *sent = carrier->whole && !carrier->over && sum->samples != INT64_MAX && sum->samples > carrier->ranks.sent;
    if (*sent && !carrier->ranks.sent && carrier->others.size > 1 && carrier->ranks.plan->n_lengths && !sum->in_order)
        return refuse(carrier, MPIDATA_ERR_ORDER, "The ranks of the carried program are not in order over the group's carriers",
                      "Parts are joined in the order of the ranks: let the launcher place consecutive ranks on each host.");
    if (*sent) MPIDATA_TRY(check_blocks(carrier));
    return *sent ? give_order(carrier, ORDER_SEND, sum->samples, NULL) : MPIDATA_SUCCESS;
}

/* -- one start of the program --------------------------------------------------------------------------------------- */

static int start_with(carrier_t *carrier, char ***variables, char ***placeholders, char ***arguments) {
    const mpidata_plan *plan = carrier->ranks.plan;
    command_t command = carrier->command;
    MPIDATA_TRY(words_of_start(&carrier->ranks, carrier->group, variables));
    if (plan->carried_each) {
        MPIDATA_TRY(words_of_simulation(plan, carrier->simulation, mpidata_solver_parameters(), variables, placeholders));
        MPIDATA_TRY(words_of_case(&carrier->ranks, carrier->group, carrier->others.hosts, placeholders));
        MPIDATA_TRY(words_fill(command.arguments, 1 << 20, *placeholders, arguments));
        command.arguments = *arguments;
        MPIDATA_TRY(case_make(&carrier->own_case, carrier->simulation, mpidata_solver_try(), carrier->group, *placeholders));
        if (*carrier->own_case.path) command.folder = carrier->own_case.path;
    }
    return program_start(&carrier->program, &command, *variables);
}

/* Wait until all carriers have executed their orders. */
static int wait_for_others(carrier_t *carrier) {
    for (;;) {
        int stopping, under_way;
        view_t room;
        MPIDATA_TRY(look(carrier));
        if (carriers_sum(&carrier->others, &room)->orders == carrier->others.orders) return MPIDATA_SUCCESS;
        MPIDATA_TRY(mpidata_solver_look(&stopping, &under_way));
        MPIDATA_TRY(rest(carrier, 1));
    }
}

static int start(carrier_t *carrier) {
    char **variables = NULL, **placeholders = NULL, **arguments = NULL;
    socket_sweep(&carrier->ranks);
    MPIDATA_TRY(socket_renew_token(&carrier->ranks));
    MPIDATA_TRY(give_order(carrier, ORDER_START, 0, carrier->ranks.token));
    MPIDATA_TRY(wait_for_others(carrier));
    const int status = start_with(carrier, &variables, &placeholders, &arguments);
    mpidata_texts_free(variables);
    mpidata_texts_free(placeholders);
    mpidata_texts_free(arguments);
    return status ? end_job(status) : MPIDATA_SUCCESS;
}

int outlives_ranks(carrier_t *carrier, int ended, double now) {
    if (!carrier->whole || !ended) carrier->ended_since = 0;
    else if (carrier->ended_since == 0) carrier->ended_since = now;
    return carrier->ended_since != 0 && now - carrier->ended_since > GRACE_S;
}

const char *goes_on_after_ranks(carrier_t *carrier, int have_left, double now) {
    if (!have_left) carrier->left_since = 0;
    else if (carrier->left_since == 0) carrier->left_since = now;
    if (!have_left || now - carrier->left_since <= carrier->start_timeout_s) return NULL;
    return "did not end within solvers.start_timeout_s after mpidata_finalize, and was ended";
}

/* Why the program must be ended, according to its signs of life; NULL: it need not. */
static const char *hung(carrier_t *carrier, const view_t *sum) {
    static char reason[sizeof sum->silent];
    const mpidata_plan *plan = carrier->ranks.plan;
    const double now = carrier->looked;
    if (*sum->silent) {
        (void)snprintf(reason, sizeof reason, "%s", sum->silent);
        return reason;
    }
    if (outlives_ranks(carrier, sum->ended, now)) return "did not end after its ranks, and was ended";
    const char *why = goes_on_after_ranks(carrier, sum->left == carrier->ranks.room, now);
    if (why) return why;
    if (sum->lost && carrier->gone_since == 0) carrier->gone_since = now;
    if (sum->lost && now - carrier->gone_since > GRACE_S) return "lost a rank, and was ended";
    if (carrier->whole || now - carrier->began <= plan->start_timeout_s) return NULL;
    (void)snprintf(reason, sizeof reason, "has not called mpidata_attach on all its ranks (%d of %d have) within "
                   "solvers.start_timeout_s, and was ended", (int)sum->attached, carrier->ranks.room);
    return reason;
}

/* Send and answer; *sent: whether there was a sample. */
static int serve_ranks(carrier_t *carrier, const view_t *sum, int *sent) {
    if (sum->attached > carrier->ranks.room)
        return refuse(carrier, MPIDATA_ERR_ORDER, "More ranks of the carried program have attached than solvers.carried.ranks says",
                      "Correct solvers.carried.ranks, or the number of ranks that the launcher starts.");
    carrier->whole |= sum->attached == carrier->ranks.room;
    MPIDATA_TRY(send_on(carrier, sum, sent));
    if (!carrier->over) return answer_requests(carrier, sum);
    carrier->finalized |= sum->left == carrier->ranks.room;
    return MPIDATA_SUCCESS;
}

static int stop_if_due(carrier_t *carrier, int *under_way) {
    int stopping;
    const int was_over = carrier->over;
    MPIDATA_TRY(mpidata_solver_look(&stopping, under_way));
    return stopping && !was_over ? give_order(carrier, ORDER_OVER, 0, NULL) : MPIDATA_SUCCESS;
}

/* Start the program, and serve it until it has ended, *reason says why it must be ended, or the job no longer needs it. */
static int run(carrier_t *carrier, const char **reason) {
    *reason = NULL;
    MPIDATA_TRY(start(carrier));
    while (!carrier->over || !carrier->finalized) {
        view_t room;
        int sent = 0, under_way;
        const int ended = program_has_ended(&carrier->program); /* before the last look at its memory */
        MPIDATA_TRY(look(carrier));
        const view_t *sum = carriers_sum(&carrier->others, &room);
        MPIDATA_TRY(serve_ranks(carrier, sum, &sent));
        if (ended || (*reason = hung(carrier, sum))) break;
        hurry(carrier, carrier->looked);
        MPIDATA_TRY(stop_if_due(carrier, &under_way));
        if (sent) carrier->backoff.idle = 0;
        else MPIDATA_TRY(rest(carrier, under_way));
    }
    return MPIDATA_SUCCESS;
}

/* End the rest of the program, and send the samples that all its ranks had committed. */
static int end_program(carrier_t *carrier, view_t *sum) {
    int sent = 0;
    view_t room;
    MPIDATA_TRY(give_order(carrier, ORDER_END, 0, NULL));
    MPIDATA_TRY(wait_for_others(carrier));
    *sum = *carriers_sum(&carrier->others, &room);
    return send_on(carrier, sum, &sent);
}

/* After an end of the program, if the job continues. */
static int begin_anew(carrier_t *carrier, const char *reason) {
    char how[512];
    view_t sum;
    const char *hint = getenv("ADIOS2_PLUGIN_PATH") ? " If it is to write with ADIOS2: does its XML file name the engine of mpidata, "
                                                      "in the io element that has the name of the program's output?" : "";
    const int status = carrier->program.status, well = !reason && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    MPIDATA_TRY(end_program(carrier, &sum));
    if (!reason && *sum.silent) reason = sum.silent; /* its last step was at a time that is not finite */
    if (carrier->finalized && (well || reason) && !*sum.silent) carrier->open = 0;
    if (!reason && *sum.words) reason = sum.words;
    (void)snprintf(how, sizeof how, "%s%s", reason ? reason : "ended with ", reason ? "" : program_how(&carrier->program));
    carrier->fruitless = carrier->took ? 0 : carrier->fruitless + 1;
    if (!well || carrier->open)
        (void)fprintf(stderr, "mpidata: %s: its program %s. It is started again.\n", carrier->ranks.who, how);
    case_end(&carrier->own_case, !well || carrier->open);
    if (!carrier->over && (carrier->open || (carrier->pending && !well)))
        MPIDATA_TRY(give_order(carrier, ORDER_GIVE_BACK, 0, how));
    if (carrier->fruitless == FRUITLESS)
        return mpidata_error(MPIDATA_ERR_JOB, "The carried program was started %d times in a row without asking for a "
                                              "simulation; the last time, it %s.%s", FRUITLESS, how, hint);
    MPIDATA_TRY(give_order(carrier, ORDER_CLEAR, 0, NULL));
    return carrier->over ? MPIDATA_SUCCESS : give_order(carrier, ORDER_TAKE, 0, NULL);
}

int lead(carrier_t *carrier) {
    if (carrier->ranks.plan->carried_each) MPIDATA_TRY(give_order(carrier, ORDER_TAKE, 0, NULL));
    while (!carrier->over) {
        const char *reason;
        MPIDATA_TRY(run(carrier, &reason));
        if (!carrier->over) MPIDATA_TRY(begin_anew(carrier, reason));
        else if (reason) MPIDATA_TRY(give_order(carrier, ORDER_END, 0, NULL));
    }
    return give_order(carrier, ORDER_LEAVE, 0, NULL);
}
