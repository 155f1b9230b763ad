#include "receive/parcels.h"

#include <stdlib.h>
#include <string.h>

/* -- requests ------------------------------------------------------------------------------------------------------- */

/* The link with a loader, and its rank there. */
static const mpidata_link *link_of(const mpidata_parcel_traffic *traffic, int loader, int *rank) {
    for (int i = 0; i < traffic->in->n_inlets; i++) {
        const mpidata_inlet *inlet = traffic->in->inlets[i];
        *rank = mpidata_link_leader(&inlet->link, &traffic->trainer->job.plan, MPIDATA_ROLE_LOADER, loader);
        if (*rank >= 0 && !inlet->lost && !inlet->gone) return &inlet->link;
    }
    return NULL;
}

static int send_requests(mpidata_parcel_traffic *traffic, int *did) {
    mpidata_parcel_queue *queue = &traffic->trainer->parcels;
    for (;;) {
        int rank = -1;
        mpidata_lock_take(&traffic->trainer->lock);
        mpidata_sending *request = mpidata_sendings_pop(&queue->requests);
        int lives = request && mpidata_parcel_queue_lives_locked(queue, request->to);
        mpidata_lock_give(&traffic->trainer->lock);
        if (!request) return MPIDATA_SUCCESS;
        *did = 1;
        const mpidata_link *link = lives ? link_of(traffic, request->to, &rank) : NULL;
        if (!link) { /* it is lost: nobody waits for its answer */
            mpidata_sending_free(request);
            continue;
        }
        mpidata_sendings_append(&traffic->sending, request);
        MPIDATA_TRY(mpidata_sending_begin(request, &traffic->transfers, rank, MPIDATA_TAG_REQUEST, link->comm));
    }
}

static void free_sent(mpidata_parcel_traffic *traffic) {
    mpidata_sending_list ended = {0};
    mpidata_sendings_move_ended(&traffic->sending, &ended);
    mpidata_sendings_free(&ended);
}

/* -- parcels -------------------------------------------------------------------------------------------------------- */

static int no_memory(void) { return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the trainer's receive thread."); }

static int open_inbox(const mpidata_parcel_traffic *traffic, mpidata_inlet *inlet) {
    const mpidata_link *link = &inlet->link;
    int *peers = malloc((size_t)link->n_ranks * sizeof *peers);
    if (!peers) return no_memory();
    for (int rank = 0; rank < link->n_ranks; rank++) {
        int number, role = mpidata_link_role(link, &traffic->trainer->job.plan, rank, &number);
        peers[rank] = role == MPIDATA_ROLE_LOADER ? number : -1;
    }
    inlet->inbox = mpidata_inbox_open(link->comm, MPIDATA_TAG_PARCEL, peers, link->n_ranks);
    free(peers);
    return inlet->inbox ? MPIDATA_SUCCESS : no_memory();
}

static int name_sender(const mpidata_parcel_traffic *traffic, const mpidata_link *link, int rank, int status) {
    char text[MPIDATA_TEXT_MAX], who[128];
    if (status != MPIDATA_ERR_WIRE && status != MPIDATA_ERR_MEMORY) return status;
    memcpy(text, mpidata_last_error(), sizeof text);
    mpidata_link_who(link, &traffic->trainer->job.plan, rank, who, sizeof who);
    return mpidata_error(status, "%.1500s. %s sent it. %s", text, who,
                         status == MPIDATA_ERR_WIRE ? "Use one build of libmpidata for the whole job."
                                                    : "Make batches smaller, or let fewer be prepared ahead.");
}

static void hand_over(mpidata_trainer *trainer, mpidata_parcel_list *whole) {
    mpidata_lock_take(&trainer->lock);
    for (mpidata_parcel *parcel; (parcel = mpidata_parcels_pop(whole));)
        (void)mpidata_parcel_queue_add_locked(&trainer->parcels, parcel);
    mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
    mpidata_lock_give(&trainer->lock);
}

static int take(mpidata_parcel_traffic *traffic, mpidata_inlet *inlet, int *did) {
    int from = 0;
    mpidata_parcel_list whole = {0};
    if (!inlet->inbox) MPIDATA_TRY(open_inbox(traffic, inlet));
    int status = inlet->lost ? MPIDATA_SUCCESS : mpidata_inbox_take(inlet->inbox, &traffic->transfers, &from, did);
    if (status == MPIDATA_ERR_DIED) status = mpidata_incoming_note_deaths(inlet);
    mpidata_inbox_whole(inlet->inbox, &whole);
    if (whole.first) hand_over(traffic->trainer, &whole);
    return status ? name_sender(traffic, &inlet->link, from, status) : MPIDATA_SUCCESS;
}

int mpidata_parcel_round(mpidata_parcel_traffic *traffic, int *did) {
    MPIDATA_TRY(mpidata_transfers_test(&traffic->transfers, did));
    free_sent(traffic);
    MPIDATA_TRY(send_requests(traffic, did));
    for (int i = 0; i < traffic->in->n_inlets; i++) {
        if (traffic->in->inlets[i]->link.n_loaders) MPIDATA_TRY(take(traffic, traffic->in->inlets[i], did));
    }
    traffic->in->parcels_under_way = traffic->transfers.n;
    return MPIDATA_SUCCESS;
}

int mpidata_parcel_news(mpidata_parcel_traffic *traffic, int loader, int what, const char *at) {
    mpidata_trainer *trainer = traffic->trainer;
    int is_new = 0;
    mpidata_lock_take(&trainer->lock);
    int status = mpidata_parcel_queue_note_locked(&trainer->parcels, loader, what, at, &is_new);
    if (is_new) mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
    mpidata_lock_give(&trainer->lock);
    for (int i = 0; i < traffic->in->n_inlets && what == MPIDATA_LOADER_LOST; i++) {
        mpidata_inlet *inlet = traffic->in->inlets[i];
        int rank = mpidata_link_leader(&inlet->link, &trainer->job.plan, MPIDATA_ROLE_LOADER, loader);
        if (rank >= 0 && inlet->inbox) mpidata_inbox_lose(inlet->inbox, rank);
    }
    return status;
}

int mpidata_parcel_retire(mpidata_parcel_traffic *traffic, int loader) {
    int did = 0, rank = -1;
    const int64_t nothing = 0;
    const void *nowhere = NULL;
    const mpidata_parcel_head head = {.magic = MPIDATA_PARCEL_MAGIC, .kind = MPIDATA_PARCEL_FAREWELL, .n_parts = 1};
    mpidata_sending *farewell;
    MPIDATA_TRY(mpidata_parcel_news(traffic, loader, MPIDATA_LOADER_RETIRES, ""));
    MPIDATA_TRY(send_requests(traffic, &did)); /* no further one for it is added */
    const mpidata_link *link = link_of(traffic, loader, &rank);
    if (!link) return MPIDATA_SUCCESS; /* it is lost */
    MPIDATA_TRY(mpidata_sending_new(&head, &nothing, &nowhere, 1, &farewell));
    farewell->to = loader;
    mpidata_sendings_append(&traffic->sending, farewell);
    return mpidata_sending_begin(farewell, &traffic->transfers, rank, MPIDATA_TAG_REQUEST, link->comm);
}

int mpidata_parcel_traffic_close(mpidata_parcel_traffic *traffic) {
    if (traffic->transfers.n) return 1; /* memory that MPI still reads or writes stays until the process ends */
    mpidata_sendings_free(&traffic->sending);
    mpidata_transfers_close(&traffic->transfers);
    return 0;
}
