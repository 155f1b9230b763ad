/* The orders of the first carrier, which all carriers of a group execute at the same point. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "carrier.h"
#include "calls/bindings.h"
#include "calls/calls.h"
#include "solver/solver.h"

static void answer_all(carrier_t *carrier, int status) {
    for (int i = 0; i < carrier->ranks.n; i++)
        if (carrier->ranks.all[i].asks) ranks_answer(&carrier->ranks.all[i], status, "");
}

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
        MPIDATA_CARRIED_SET(shared->cancel_from, 0);
    }
    carrier->pending = 0;
    carrier->open = carrier->took = 1;
    carrier->began_at = ranks->sent;
    ranks->cancel_from = 0; /* until the next look, if it is already cancelled */
}

static int answer_next(carrier_t *carrier) {
    carrier->open = 0;
    const int one_each = carrier->ranks.plan->carried_each && !carrier->pending;
    const int status = one_each ? MPIDATA_END : take_simulation(carrier);
    if (status > MPIDATA_END) return status;
    if (status == MPIDATA_SUCCESS) hand_over(carrier);
    answer_all(carrier, status);
    return MPIDATA_SUCCESS;
}

static int answer_fail(carrier_t *carrier, int status) {
    if (status == MPIDATA_CANCELLED) status = MPIDATA_SUCCESS; /* nothing has failed */
    if (status > MPIDATA_END) return status;
    carrier->open = 0;
    answer_all(carrier, status);
    return MPIDATA_SUCCESS;
}

static int answer_finalize(carrier_t *carrier) {
    for (int i = 0; i < carrier->ranks.n; i++) carrier->ranks.all[i].left = 1;
    /* A program that is started for each simulation has made it when it has ended well. */
    carrier->open &= carrier->ranks.plan->carried_each;
    answer_all(carrier, MPIDATA_SUCCESS);
    return MPIDATA_SUCCESS;
}

static int answer_refresh(carrier_t *carrier) {
    int64_t version;
    const int status = carrier->over ? MPIDATA_END : mpidata_refresh(&version);
    carrier->over |= status == MPIDATA_END;
    if (status > MPIDATA_END) return status;
    if (!status && version) MPIDATA_TRY(memory_share(&carrier->ranks, mpidata_calls_transport()->published()));
    answer_all(carrier, status);
    return MPIDATA_SUCCESS;
}

void answer_each(carrier_t *carrier) {
    for (int i = 0; i < carrier->ranks.n; i++) {
        rank_t *rank = &carrier->ranks.all[i];
        if (!rank->asks) continue;
        rank->left |= rank->asks == MPIDATA_CARRIED_FINALIZE;
        ranks_answer(rank, rank->left ? MPIDATA_SUCCESS : MPIDATA_END, "");
    }
}

static int send_up_to(carrier_t *carrier, int64_t number) {
    const int status = carrier->over ? MPIDATA_END : send_samples(&carrier->ranks, number);
    carrier->over |= status == MPIDATA_END;
    return status == MPIDATA_END ? MPIDATA_SUCCESS : status;
}

/* The simulation of a program that has died goes back to the scheduler. */
static int give_simulation_back(carrier_t *carrier, const char *how) {
    const int status = mpidata_fail_try(how);
    carrier->open = carrier->pending = 0;
    carrier->over |= status == MPIDATA_END;
    return status == MPIDATA_END || status == MPIDATA_CANCELLED ? MPIDATA_SUCCESS : status;
}

static int clear(carrier_t *carrier) {
    MPIDATA_TRY(mpidata_wait()); /* until MPI no longer reads from the memory of the ranks */
    for (int i = 0; i < carrier->ranks.n; i++) questions_leave(&carrier->ranks, &carrier->ranks.all[i]);
    ranks_forget(&carrier->ranks);
    socket_clean(&carrier->ranks);
    return MPIDATA_SUCCESS;
}

static void start(carrier_t *carrier, const char *token) {
    memcpy(carrier->ranks.token, token, sizeof carrier->ranks.token);
    carrier->whole = carrier->finalized = carrier->took = 0;
    carrier->gone_since = carrier->ended_since = carrier->left_since = 0;
    carrier->began_at = 0;
    carrier->began = carrier->looked = mpidata_now();
}

static int stop(carrier_t *carrier) {
    carrier->over = 1;
    mpidata_solver_stop();
    ranks_stop(&carrier->ranks);
    return MPIDATA_SUCCESS;
}

int carry_out(carrier_t *carrier, const order_t *order) {
    int status;
    switch (order->kind) {
    case ORDER_TAKE:
        status = take_simulation(carrier);
        return status == MPIDATA_END ? MPIDATA_SUCCESS : status;
    case ORDER_START: start(carrier, order->text); return MPIDATA_SUCCESS;
    case ORDER_SEND: return send_up_to(carrier, order->number);
    case ORDER_NEXT: return answer_next(carrier);
    case ORDER_FAIL: return answer_fail(carrier, mpidata_fail(order->text));
    case ORDER_FAIL_TRY: return answer_fail(carrier, mpidata_fail_try(order->text));
    case ORDER_FINALIZE: return answer_finalize(carrier);
    case ORDER_REFRESH: return answer_refresh(carrier);
    case ORDER_OVER: return stop(carrier);
    case ORDER_END: program_end(&carrier->program, &carrier->ranks); return MPIDATA_SUCCESS;
    case ORDER_GIVE_BACK: return give_simulation_back(carrier, order->text);
    case ORDER_CLEAR: return clear(carrier);
    case ORDER_LEAVE: carrier->left = 1; return MPIDATA_SUCCESS;
    default: return mpidata_error(MPIDATA_ERR_WIRE, "The carriers of a group are of different versions of mpidata.");
    }
}

int give_order(carrier_t *carrier, int kind, int64_t number, const char *text) {
    order_t order = {.kind = kind, .number = number};
    if (text) (void)snprintf(order.text, sizeof order.text, "%s", text);
    MPIDATA_TRY(carriers_order(&carrier->others, &order));
    return carry_out(carrier, &order);
}
