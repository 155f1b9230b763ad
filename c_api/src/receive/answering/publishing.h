/* The receive thread's part in publishing: it answers ranks that ask for newer arrays than they have. Values are sent without
 * a copy; nobody overwrites them meanwhile. */
#ifndef MPIDATA_RECEIVE_PUBLISHING_H
#define MPIDATA_RECEIVE_PUBLISHING_H

#include "receive/incoming.h"

/* A rank that has asked and waits for a newer version. */
typedef struct {
    const mpidata_inlet *inlet;
    int rank;
    int64_t version;
} mpidata_asker;

typedef struct {
    mpidata_trainer *trainer;
    mpidata_incoming *in; /* whose links the questions come over */
    mpidata_transfers transfers;
    mpidata_sending_list sending; /* the ticket of each is the edition that it reads; -1: none */
    mpidata_asker *waiting;
    int64_t n_waiting, allocated;
    double next_look;
    int used; /* somebody has asked */
} mpidata_publishing;

/* Take questions and answer them; *did becomes 1 if there was work. */
int mpidata_publishing_round(mpidata_publishing *publishing, int *did);

/* A group or an inference rank is lost or has left: its ranks no longer wait or receive. */
void mpidata_publishing_forget(mpidata_publishing *publishing, int role, int number);

/* Frees what has ended; returns whether anything has not. */
int mpidata_publishing_close(mpidata_publishing *publishing);

#endif
