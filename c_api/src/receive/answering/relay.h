/* Forwarding of questions and answers between solver ranks and inference ranks that share no communicator, because one of them
 * was spawned: each shares one with all trainers, whose receive threads forward whole parcels. Parcels for a lost receiver are
 * dropped: the solver rank learns of the loss, and asks again. */
#ifndef MPIDATA_RELAY_H
#define MPIDATA_RELAY_H

#include "receive/incoming.h"

/* The receiver of the answer to a question. */
typedef struct {
    uint64_t number, original; /* of the question: as forwarded, and as sent */
    const mpidata_link *link;
    int rank;
    int inference; /* which answers */
} mpidata_route;

typedef struct mpidata_relayed mpidata_relayed;

typedef struct {
    mpidata_incoming *in;
    mpidata_transfers transfers;
    mpidata_relayed *relayed; /* under way */
    mpidata_route *routes;
    int64_t n_routes, allocated;
    uint64_t numbers;
} mpidata_relay;

/* Take and send; *did becomes 1 if there was work. */
int mpidata_relay_round(mpidata_relay *relay, int *did);

/* A group or inference rank is lost, or has left. */
void mpidata_relay_lose(mpidata_relay *relay, int role, int number);

/* Frees what has ended; returns whether anything has not. */
int mpidata_relay_close(mpidata_relay *relay);

#endif
