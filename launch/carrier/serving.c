/* The loop of every carrier. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calls/calls.h"
#include "carrier.h"
#include "family.h"
#include "solver/solver.h"

enum { IDLE_MS = 100, SINK_NS = 50000 };
static const double HURRY_EVERY_S = 1;

/* A rank has found an error that ends the job. */
static int pass_error_on(carrier_t *carrier, const rank_t *rank) {
    char sentence[MPIDATA_CARRIED_SENTENCE];
    memcpy(sentence, rank->shared->reason, sizeof sentence);
    sentence[sizeof sentence - 1] = '\0';
    for (int i = 0; i < carrier->ranks.n; i++)
        if (carrier->ranks.all[i].asks) ranks_answer(&carrier->ranks.all[i], MPIDATA_SUCCESS, "");
    (void)mpidata_error(MPIDATA_ERR_ORDER, "%s", sentence);
    return end_job(MPIDATA_ERR_ORDER);
}

/* A long wait of this process, for example in MPI because trainers are slow, is not silence of the program. */
static double now_after_pause(carrier_t *carrier) {
    const double now = mpidata_now();
    if (now - carrier->looked > 1) {
        carrier->began += now - carrier->looked;
        for (int i = 0; i < carrier->ranks.n; i++) carrier->ranks.all[i].alive = now;
    }
    return carrier->looked = now;
}

static void find_silent(carrier_t *carrier, double now) {
    const int makes_steps = carrier->ranks.sent > carrier->began_at;
    const mpidata_plan *plan = carrier->ranks.plan;
    const double allowed = makes_steps ? plan->timeout_s : plan->start_timeout_s;
    *carrier->view.silent = '\0';
    if (carrier->ranks.diverged)
        snprintf(carrier->view.silent, sizeof carrier->view.silent, "made a step at a time that is not finite, and was ended");
    for (int i = 0; i < carrier->ranks.n; i++) {
        const rank_t *rank = &carrier->ranks.all[i];
        if (!rank->shared || rank->gone || rank->left || now - rank->alive <= allowed) continue;
        snprintf(carrier->view.silent, sizeof carrier->view.silent,
                 "was silent for %.1f s, longer than solvers.%s allows, and was ended", now - rank->alive,
                 makes_steps ? "timeout_s" : "start_timeout_s");
    }
}

int look(carrier_t *carrier) {
    ranks_t *ranks = &carrier->ranks;
    const double now = now_after_pause(carrier);
    questions_count_wait(carrier);
    const char *wrong = ranks_take(ranks, now);
    if (wrong) return refuse(carrier, MPIDATA_ERR_WIRE, wrong, "Use one version of mpidata.");
    for (int i = 0; i < ranks->n; i++)
        if (ranks->all[i].asks == MPIDATA_CARRIED_ERROR) return pass_error_on(carrier, &ranks->all[i]);
    if (carrier->over) {
        ranks_stop(ranks);
        answer_each(carrier);
    }
    if (mpidata_calls.cancelled) ranks_cancel(ranks);
    ranks_view(ranks, &carrier->view);
    find_silent(carrier, now);
    give_slots_back(ranks);
    return carriers_tell(&carrier->others, &carrier->view);
}

void hurry(carrier_t *carrier, double now) {
    if (!carrier->finalized || now - carrier->continued < HURRY_EVERY_S) return;
    carrier->continued = now;
    continue_family();
}

/* Whether another carrier is waited for: only MPI sees it. */
static int waits_for_others(const carrier_t *carrier) {
    const view_t *view = &carrier->view;
    if (carrier->others.size == 1) return 0;
    for (int what = 0; what < MPIDATA_CARRIED_ERROR; what++)
        if (view->asks[what]) return 1;
    return carrier->ranks.seen > carrier->ranks.sent;
}

int rest(carrier_t *carrier, int under_way) {
    struct pollfd *polled = calloc((size_t)carrier->ranks.n + 2, sizeof *polled);
    if (!polled) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the carrier.");
    nfds_t n = (nfds_t)ranks_poll(&carrier->ranks, polled);
    polled[n++] = (struct pollfd){.fd = carrier->program.descriptor, .events = POLLIN};
    under_way |= waits_for_others(carrier) | questions_open(&carrier->ranks);
    struct timespec time = {.tv_nsec = under_way ? mpidata_backoff_next(&carrier->backoff) : IDLE_MS * 1000000L};
    const int sinks = time.tv_nsec > SINK_NS;
    if (sinks) ranks_sleep(&carrier->ranks, 1);
    if (!ranks_have_news(&carrier->ranks) && !questions_have_news(&carrier->ranks)) (void)ppoll(polled, n, &time, NULL);
    if (sinks) ranks_sleep(&carrier->ranks, 0);
    free(polled);
    return MPIDATA_SUCCESS;
}
