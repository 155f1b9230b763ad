/* Parcels that come over one communicator. Messages are matched first and received second, each into its place; no receive
 * is waited for, so that a sender that computes, hangs or dies in the middle of a parcel holds up nobody else's. Of one
 * thread. */
#ifndef MPIDATA_INBOX_H
#define MPIDATA_INBOX_H

#include "parcel/parcel.h"

typedef struct mpidata_inbox mpidata_inbox;

/* tag: that of the messages; peers: who each rank of comm is, a trainer's or loader's number; -1: nobody who may send. They
 * are copied. NULL: there is not enough memory. */
mpidata_inbox *mpidata_inbox_open(MPI_Comm comm, int tag, const int *peers, int n_ranks);

/* Receive from this rank alone from now on: the deaths of others are no error then. */
void mpidata_inbox_listen_to(mpidata_inbox *inbox, int rank);

/* Frees what has come of parcels that are not whole; not while anything is under way. */
void mpidata_inbox_close(mpidata_inbox *inbox);

/* Where parts of parcels that come from now on are to be; `placing` is copied. */
void mpidata_inbox_place(mpidata_inbox *inbox, mpidata_placing placing);

/* Whether a parcel of this rank, of this number, has begun to come, but is not whole; or MPI may still write to it, as its
 * sender is lost. */
int mpidata_inbox_holds(const mpidata_inbox *inbox, int rank, uint64_t number);

/* Receive what has come; after mpidata_transfers_test. MPIDATA_ERR_DIED: a rank has died, which the caller is to acknowledge. MPIDATA_ERR_WIRE, _MEMORY:
 * *from is the rank that has sent what is wrong. */
int mpidata_inbox_take(mpidata_inbox *inbox, mpidata_transfers *transfers, int *from, int *did);

/* Move those that are whole to the end of the list, and free those that will not be. */
void mpidata_inbox_whole(mpidata_inbox *inbox, mpidata_parcel_list *whole);

/* A rank is lost: what is not whole of it is dropped, and what may still come. */
void mpidata_inbox_lose(mpidata_inbox *inbox, int rank);

#endif
