/* Questions of solver ranks and the answers of inference ranks that have no communicator in common, as one of them was
 * spawned: each shares one with all trainers, whose receive threads pass the parcels on, whole ones at a time. What was
 * to go to somebody that is lost is dropped: the solver rank hears of the loss, and asks again. */
#ifndef MPIDATA_RELAY_H
#define MPIDATA_RELAY_H

#include "receive/incoming.h"

/* Where the answer to a question is to go. */
typedef struct {
    uint64_t number, original; /* of the question: as it was passed on, and as its sender knows it */
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

/* Take and send; *did becomes 1 if there was anything. */
int mpidata_relay_round(mpidata_relay *relay, int *did);

/* A group or inference rank is lost, or has left. */
void mpidata_relay_lose(mpidata_relay *relay, int role, int number);

/* Frees what has ended; returns whether anything has not. */
int mpidata_relay_close(mpidata_relay *relay);

#endif
