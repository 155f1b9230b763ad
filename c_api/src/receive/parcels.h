/* The receive thread's part in the traffic with loaders: it sends waiting requests, and receives parcels. */
#ifndef MPIDATA_RECEIVE_PARCELS_H
#define MPIDATA_RECEIVE_PARCELS_H

#include "receive/incoming.h"

typedef struct {
    mpidata_trainer *trainer;
    mpidata_incoming *in; /* that has the links with the loaders */
    mpidata_transfers transfers;
    mpidata_sending_list sending;
} mpidata_parcel_traffic;

/* Send and take; *did becomes 1 if there was work. */
int mpidata_parcel_round(mpidata_parcel_traffic *traffic, int *did);

/* News of the scheduler about a loader: MPIDATA_LOADER_..., and what it was reading, if it is lost. */
int mpidata_parcel_news(mpidata_parcel_traffic *traffic, int loader, int what, const char *at);

/* Send a loader no more requests, and a farewell after its last one. */
int mpidata_parcel_retire(mpidata_parcel_traffic *traffic, int loader);

/* Frees what has ended; returns whether anything has not. */
int mpidata_parcel_traffic_close(mpidata_parcel_traffic *traffic);

#endif
