#include "receive/answering/relay.h"

#include <stdlib.h>

#include "containers/array.h"
#include "receive/incoming/deaths.h"

/* A parcel that is being forwarded, with the memory that it is sent from. */
struct mpidata_relayed {
    mpidata_parcel *parcel;
    mpidata_sending *sending;
    const mpidata_link *link;
    int rank;
    mpidata_relayed *next;
};

static int no_memory(void) {
    return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the trainer's receive thread.");
}

static const mpidata_plan *plan_of(const mpidata_relay *relay) { return &relay->in->trainer->job.plan; }

static void free_relayed(mpidata_relayed *one) {
    if (one->sending) mpidata_sending_free(one->sending);
    mpidata_parcel_free(one->parcel);
    free(one);
}

static void free_sent(mpidata_relay *relay) {
    for (mpidata_relayed **at = &relay->relayed; *at;) {
        mpidata_relayed *one = *at;
        if (one->sending->pending.left) {
            at = &one->next;
        } else {
            *at = one->next;
            free_relayed(one);
        }
    }
}

/* Forward a parcel, which the relay then owns. */
static int pass_on(mpidata_relay *relay, mpidata_parcel *parcel, uint64_t number, const mpidata_link *link, int rank,
                   int tag) {
    mpidata_relayed *one = calloc(1, sizeof *one);
    const void **parts = malloc((size_t)parcel->head.n_parts * sizeof *parts);
    mpidata_parcel_head head = parcel->head;
    head.dataset = 0;
    head.number = number;
    int status = one && parts ? MPIDATA_SUCCESS : no_memory();
    for (int64_t i = 0; i < head.n_parts && !status; i++) parts[i] = parcel->memory + parcel->offsets[i];
    if (!status) status = mpidata_sending_new(&head, parcel->sizes, parts, 0, &one->sending);
    free(parts);
    if (status) {
        free(one);
        mpidata_parcel_free(parcel);
        return status;
    }
    *one = (mpidata_relayed){.parcel = parcel, .sending = one->sending, .link = link, .rank = rank,
                             .next = relay->relayed};
    relay->relayed = one;
    return mpidata_sending_begin(one->sending, &relay->transfers, rank, tag, link->comm);
}

/* The link with an inference rank, and its rank there. */
static const mpidata_link *link_of(const mpidata_relay *relay, int inference, int *rank) {
    const mpidata_inlet *inlet = mpidata_inlet_of(relay->in, MPIDATA_ROLE_INFERENCE, inference);
    if (!inlet || inlet->lost || inlet->gone) return NULL;
    *rank = mpidata_link_leader(&inlet->link, plan_of(relay), MPIDATA_ROLE_INFERENCE, inference);
    return inlet->link.dead[*rank] ? NULL : &inlet->link;
}

static int pass_question_on(mpidata_relay *relay, const mpidata_link *from, mpidata_parcel *question) {
    const int inference = (int)question->head.dataset - 1;
    int rank = -1;
    const mpidata_link *link = inference < 0 ? NULL : link_of(relay, inference, &rank);
    if (!link) {
        mpidata_parcel_free(question);
        return MPIDATA_SUCCESS;
    }
    if (!mpidata_array_reserve(&relay->routes, &relay->allocated, relay->n_routes + 1, 16, sizeof *relay->routes)) {
        mpidata_parcel_free(question);
        return no_memory();
    }
    const mpidata_route route = {++relay->numbers, question->head.number, from, question->peer, inference};
    relay->routes[relay->n_routes++] = route;
    return pass_on(relay, question, route.number, link, rank, MPIDATA_TAG_QUESTION);
}

static int pass_answer_on(mpidata_relay *relay, mpidata_parcel *answer) {
    int64_t i = 0;
    while (i < relay->n_routes && relay->routes[i].number != answer->head.number) i++;
    if (i == relay->n_routes) {
        mpidata_parcel_free(answer);
        return MPIDATA_SUCCESS;
    }
    const mpidata_route route = relay->routes[i];
    relay->routes[i] = relay->routes[--relay->n_routes];
    return pass_on(relay, answer, route.original, route.link, route.rank, MPIDATA_TAG_ANSWER);
}

/* Open the inbox of those who ask, or of those who answer, in one communicator. */
static int open_inbox(const mpidata_relay *relay, const mpidata_link *link, int role, int tag, mpidata_inbox **inbox) {
    int *peers = malloc((size_t)link->n_ranks * sizeof *peers), number;
    if (!peers) return no_memory();
    for (int rank = 0; rank < link->n_ranks; rank++)
        peers[rank] = mpidata_link_role(link, plan_of(relay), rank, &number) == role ? rank : -1;
    *inbox = mpidata_inbox_open(link->comm, tag, peers, link->n_ranks);
    free(peers);
    return *inbox ? MPIDATA_SUCCESS : no_memory();
}

static int open_inboxes(const mpidata_relay *relay, mpidata_inlet *inlet) {
    if (inlet->answers) return MPIDATA_SUCCESS;
    MPIDATA_TRY(open_inbox(relay, &inlet->link, MPIDATA_ROLE_SOLVER, MPIDATA_TAG_QUESTION, &inlet->questions));
    return open_inbox(relay, &inlet->link, MPIDATA_ROLE_INFERENCE, MPIDATA_TAG_ANSWER, &inlet->answers);
}

static int take(mpidata_relay *relay, mpidata_inlet *inlet, mpidata_inbox *inbox, int *did) {
    int from = 0;
    mpidata_parcel_list whole = {0};
    int status = mpidata_inbox_take(inbox, &relay->transfers, &from, did);
    if (status == MPIDATA_ERR_DIED) status = mpidata_incoming_note_deaths(inlet);
    mpidata_inbox_whole(inbox, &whole);
    for (mpidata_parcel *parcel; (parcel = mpidata_parcels_pop(&whole));) {
        if (status)
            mpidata_parcel_free(parcel);
        else if (inbox == inlet->questions)
            status = pass_question_on(relay, &inlet->link, parcel);
        else
            status = pass_answer_on(relay, parcel);
    }
    return status;
}

/* Without spawned ranks, all share the world. */
int mpidata_relay_round(mpidata_relay *relay, int *did) {
    if (relay->in->n_inlets < 2 && !relay->relayed && !relay->transfers.n) return MPIDATA_SUCCESS;
    MPIDATA_TRY(mpidata_transfers_test(&relay->transfers, did));
    free_sent(relay);
    for (int i = 0; i < relay->in->n_inlets; i++) {
        mpidata_inlet *inlet = relay->in->inlets[i];
        if (inlet->lost || inlet->gone) continue;
        MPIDATA_TRY(open_inboxes(relay, inlet));
        MPIDATA_TRY(take(relay, inlet, inlet->questions, did));
        MPIDATA_TRY(take(relay, inlet, inlet->answers, did));
    }
    relay->in->questions_under_way = relay->transfers.n;
    return MPIDATA_SUCCESS;
}

/* Whether this rank belongs to that group, or is that inference rank. */
static int is_of(const mpidata_relay *relay, const mpidata_link *link, int rank, int role, int number) {
    int its;
    return mpidata_link_role(link, plan_of(relay), rank, &its) == role && its == number;
}

void mpidata_relay_lose(mpidata_relay *relay, int role, int number) {
    mpidata_inlet *inlet = mpidata_inlet_of(relay->in, role, number);
    if (!inlet) return;
    for (int64_t i = relay->n_routes - 1; i >= 0; i--) {
        const mpidata_route *route = &relay->routes[i];
        const int answers = role == MPIDATA_ROLE_INFERENCE && route->inference == number;
        if (answers || (route->link == &inlet->link && is_of(relay, route->link, route->rank, role, number)))
            relay->routes[i] = relay->routes[--relay->n_routes];
    }
    for (mpidata_relayed *one = relay->relayed; one; one = one->next)
        if (one->link == &inlet->link && is_of(relay, one->link, one->rank, role, number))
            mpidata_transfers_forget(&relay->transfers, &one->sending->pending);
    for (int rank = 0; rank < inlet->link.n_ranks && inlet->answers; rank++)
        if (is_of(relay, &inlet->link, rank, role, number))
            mpidata_inbox_lose(role == MPIDATA_ROLE_INFERENCE ? inlet->answers : inlet->questions, rank);
}

int mpidata_relay_close(mpidata_relay *relay) {
    if (relay->transfers.n) return 1; /* memory that MPI still reads or writes stays until the process ends */
    free_sent(relay);
    mpidata_transfers_close(&relay->transfers);
    free(relay->routes);
    relay->routes = NULL;
    return 0;
}
