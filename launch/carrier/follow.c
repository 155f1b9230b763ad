/* A carrier that is not the first of its group: it does what that one orders. */
#include "carrier.h"
#include "solver/solver.h"

static int obey(carrier_t *carrier, int *did) {
    order_t order;
    int came;
    for (*did = 0; !carrier->left; *did = 1) {
        MPIDATA_TRY(carriers_next_order(&carrier->others, &order, &came));
        if (!came) return MPIDATA_SUCCESS;
        MPIDATA_TRY(carry_out(carrier, &order));
    }
    return MPIDATA_SUCCESS;
}

int follow(carrier_t *carrier) {
    while (!carrier->left) {
        int did, stopping, under_way;
        MPIDATA_TRY(obey(carrier, &did));
        MPIDATA_TRY(look(carrier));
        MPIDATA_TRY(mpidata_solver_look(&stopping, &under_way));
        if (did) carrier->backoff.idle = 0;
        else MPIDATA_TRY(rest(carrier, under_way));
    }
    return MPIDATA_SUCCESS;
}
