/* The carriers of a group: the first one decides, and orders the others to do the same, because calls of libmpidata are
 * collective; the others report to it what their ranks have done. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "carrier.h"
#include "wire/wire.h"

enum { TAG_ORDER = 1, TAG_VIEW = 2, HOST = 256 };

static int out_of_memory(void) { return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the carrier."); }

static int is_among_first(const char *all, int n, int i) {
    for (int k = 0; k < n; k++)
        if (!strncmp(all + (size_t)k * HOST, all + (size_t)i * HOST, HOST)) return 1;
    return 0;
}

/* Find the place from the host of each carrier. */
static int find_place(carriers_t *carriers, const char *all) {
    const char *mine = all + (size_t)carriers->rank * HOST;
    char *end = carriers->hosts = calloc((size_t)carriers->size, HOST);
    if (!end) return out_of_memory();
    for (int i = 0; i < carriers->size; i++) {
        const char *host = all + (size_t)i * HOST;
        if (!strncmp(host, mine, HOST)) {
            carriers->index += i < carriers->rank;
            carriers->here++;
        }
        if (!is_among_first(all, i, i)) end += sprintf(end, "%s%s", i ? "," : "", host);
    }
    return MPIDATA_SUCCESS;
}

int carriers_open(carriers_t *carriers, MPI_Comm group) {
    MPI_Request request;
    *carriers = (carriers_t){.comm = group, .telling = MPI_REQUEST_NULL};
    MPIDATA_TRY_MPI(MPI_Comm_size(group, &carriers->size));
    MPIDATA_TRY_MPI(MPI_Comm_rank(group, &carriers->rank));
    char mine[HOST] = "", *all = calloc((size_t)carriers->size, HOST);
    carriers->views = calloc((size_t)carriers->size, sizeof *carriers->views);
    if (!all || !carriers->views) return out_of_memory();
    (void)gethostname(mine, sizeof mine - 1);
    MPIDATA_TRY_MPI(MPI_Iallgather(mine, HOST, MPI_BYTE, all, HOST, MPI_BYTE, group, &request));
    int status = mpidata_wait_request(&request, MPI_STATUS_IGNORE, NULL, NULL);
    if (!status) status = find_place(carriers, all);
    free(all);
    return status;
}

int carriers_order(carriers_t *carriers, const order_t *order) {
    carriers->orders++;
    for (int i = 1; i < carriers->size; i++) {
        MPI_Request request;
        MPIDATA_TRY_MPI(MPI_Isend(order, (int)sizeof *order, MPI_BYTE, i, TAG_ORDER, carriers->comm, &request));
        MPIDATA_TRY(mpidata_wait_request(&request, MPI_STATUS_IGNORE, NULL, NULL));
    }
    return MPIDATA_SUCCESS;
}

int carriers_next_order(carriers_t *carriers, order_t *order, int *came) {
    MPIDATA_TRY_MPI(MPI_Iprobe(0, TAG_ORDER, carriers->comm, came, MPI_STATUS_IGNORE));
    if (!*came) return MPIDATA_SUCCESS;
    MPIDATA_TRY_MPI(MPI_Recv(order, (int)sizeof *order, MPI_BYTE, 0, TAG_ORDER, carriers->comm, MPI_STATUS_IGNORE));
    order->text[sizeof order->text - 1] = '\0';
    carriers->orders++;
    return MPIDATA_SUCCESS;
}

static int hear(carriers_t *carriers) {
    for (int came = 1; came;) {
        MPI_Status status;
        MPIDATA_TRY_MPI(MPI_Iprobe(MPI_ANY_SOURCE, TAG_VIEW, carriers->comm, &came, &status));
        if (!came) break;
        view_t *view = &carriers->views[status.MPI_SOURCE];
        MPIDATA_TRY_MPI(MPI_Recv(view, (int)sizeof *view, MPI_BYTE, status.MPI_SOURCE, TAG_VIEW, carriers->comm,
                                 MPI_STATUS_IGNORE));
        view->words[sizeof view->words - 1] = view->silent[sizeof view->silent - 1] = view->reason[sizeof view->reason - 1] = '\0';
    }
    return MPIDATA_SUCCESS;
}

int carriers_tell(carriers_t *carriers, view_t *mine) {
    int sent = 1;
    mine->orders = carriers->orders;
    if (carriers->rank == 0) {
        carriers->mine = mine;
        return carriers->size > 1 ? hear(carriers) : MPIDATA_SUCCESS;
    }
    MPIDATA_TRY_MPI(MPI_Test(&carriers->telling, &sent, MPI_STATUS_IGNORE));
    if (!sent || !memcmp(mine, &carriers->views[0], sizeof *mine)) return MPIDATA_SUCCESS;
    carriers->views[0] = *mine;
    MPIDATA_TRY_MPI(MPI_Isend(&carriers->views[0], (int)sizeof *mine, MPI_BYTE, 0, TAG_VIEW, carriers->comm,
                              &carriers->telling));
    return MPIDATA_SUCCESS;
}

int carriers_close(carriers_t *carriers) {
    MPI_Request request;
    if (carriers->rank) {
        MPIDATA_TRY(mpidata_wait_request(&carriers->telling, MPI_STATUS_IGNORE, NULL, NULL));
        MPIDATA_TRY_MPI(MPI_Isend(NULL, 0, MPI_BYTE, 0, TAG_VIEW, carriers->comm, &request));
        return mpidata_wait_request(&request, MPI_STATUS_IGNORE, NULL, NULL);
    }
    for (int i = 1; i < carriers->size; i++)
        for (int length = 1; length;) {
            MPI_Status status;
            view_t view;
            MPIDATA_TRY_MPI(MPI_Irecv(&view, (int)sizeof view, MPI_BYTE, i, TAG_VIEW, carriers->comm, &request));
            MPIDATA_TRY(mpidata_wait_request(&request, &status, NULL, NULL));
            MPIDATA_TRY_MPI(MPI_Get_count(&status, MPI_BYTE, &length));
        }
    return MPIDATA_SUCCESS;
}

const view_t *carriers_sum(const carriers_t *carriers, view_t *sum) {
    if (carriers->size == 1) return carriers->mine;
    *sum = *carriers->mine;
    for (int i = 1; i < carriers->size; i++) {
        const view_t *view = &carriers->views[i];
        if (view->orders < sum->orders) sum->orders = view->orders;
        if (view->samples < sum->samples) sum->samples = view->samples;
        if (sum->attached) sum->ended &= view->ended || !view->attached;
        else sum->ended = view->ended;
        sum->attached += view->attached;
        sum->left += view->left;
        sum->lost += view->lost;
        sum->ahead += view->ahead;
        for (int what = 0; what < MPIDATA_CARRIED_ERROR; what++) sum->asks[what] += view->asks[what];
        sum->in_order &= !view->attached || (view->in_order && view->least > sum->greatest);
        if (view->attached) sum->greatest = view->greatest;
        if (!*sum->silent) memcpy(sum->silent, view->silent, sizeof sum->silent);
        if (!*sum->words) memcpy(sum->words, view->words, sizeof sum->words);
        if (!*sum->reason) memcpy(sum->reason, view->reason, sizeof sum->reason);
    }
    return sum;
}
