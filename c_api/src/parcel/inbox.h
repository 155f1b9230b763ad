/* Parcels that come over one communicator. Messages are matched first and received second, each into its place; no receive
 * is waited for, so that a sender that computes, hangs or dies within a parcel does not delay those of others. For one
 * thread. */
#ifndef MPIDATA_INBOX_H
#define MPIDATA_INBOX_H

#include "parcel/parcel.h"

typedef struct mpidata_inbox mpidata_inbox;

/* tag: of the messages; peers: for each rank of comm the number of its trainer or loader, -1: it may not send; copied. NULL:
 * memory is exhausted. */
mpidata_inbox *mpidata_inbox_open(MPI_Comm comm, int tag, const int *peers, int n_ranks);

/* Receive only from this rank from now on: the deaths of others are then not errors. */
void mpidata_inbox_listen_to(mpidata_inbox *inbox, int rank);

/* Also frees incomplete parcels; not while anything is in flight. */
void mpidata_inbox_close(mpidata_inbox *inbox);

/* Set the places for parts of later parcels; `placing` is copied. */
void mpidata_inbox_place(mpidata_inbox *inbox, mpidata_placing placing);

/* Whether a parcel of this rank with this number has started to come, but is not whole; or MPI may still write to it, because
 * its sender is lost. */
int mpidata_inbox_holds(const mpidata_inbox *inbox, int rank, uint64_t number);

/* Receive messages that have come; after mpidata_transfers_test. MPIDATA_ERR_DIED: a rank has died, which the caller must
 * acknowledge. MPIDATA_ERR_WIRE, _MEMORY: *from is the sender of the wrong message. */
int mpidata_inbox_take(mpidata_inbox *inbox, mpidata_transfers *transfers, int *from, int *did);

/* Move whole parcels to the end of the list, and free those that will never be whole. */
void mpidata_inbox_whole(mpidata_inbox *inbox, mpidata_parcel_list *whole);

/* A rank is lost: drop its incomplete parcels, and those that may still come. */
void mpidata_inbox_lose(mpidata_inbox *inbox, int rank);

#endif
