/* Sends and receives in flight, of any number of parcels, tested with one call of MPI. For one thread. */
#ifndef MPIDATA_TRANSFERS_H
#define MPIDATA_TRANSFERS_H

#include <mpi.h>
#include <stdint.h>

/* Those of one parcel: how many have not ended; whether one has failed because its peer has died. */
typedef struct {
    int left, failed;
} mpidata_pending;

typedef struct {
    MPI_Request *requests;
    mpidata_pending **of;
    int *done;
    MPI_Status *statuses;
    int n;
    int64_t allocated;
} mpidata_transfers;

void mpidata_transfers_close(mpidata_transfers *transfers);

/* Start one; a death is noted, but is not an error. Sends are synchronous: one that has ended was matched. */
int mpidata_transfers_send(mpidata_transfers *transfers, const void *data, int bytes, int rank, int tag, MPI_Comm comm,
                           mpidata_pending *pending);
int mpidata_transfers_receive(mpidata_transfers *transfers, void *data, int bytes, MPI_Message *message,
                              mpidata_pending *pending);

/* Forget those of one parcel that are in flight, because its peer is dead: MPI does not always end them. */
void mpidata_transfers_forget(mpidata_transfers *transfers, mpidata_pending *pending);

/* Take out those that have ended; *did becomes 1 if there were any. */
int mpidata_transfers_test(mpidata_transfers *transfers, int *did);

#endif
