/* The receive thread's part in the traffic with loaders: it sends the requests that wait, and takes in parcels. */
#ifndef MPIDATA_RECEIVE_PARCELS_H
#define MPIDATA_RECEIVE_PARCELS_H

#include "receive/incoming.h"

typedef struct {
    mpidata_trainer *trainer;
    mpidata_incoming *in; /* whose links lead to the loaders */
    mpidata_transfers transfers;
    mpidata_sending_list sending;
} mpidata_parcel_traffic;

/* Send and take; *did becomes 1 if there was anything. */
int mpidata_parcel_round(mpidata_parcel_traffic *traffic, int *did);

/* What the scheduler says of a loader: MPIDATA_LOADER_..., and at what it was where it is lost. */
int mpidata_parcel_news(mpidata_parcel_traffic *traffic, int loader, int what, const char *at);

/* Send a loader no more requests, and tell it so, behind those that it has. */
int mpidata_parcel_retire(mpidata_parcel_traffic *traffic, int loader);

/* Frees what has ended; returns whether anything has not. */
int mpidata_parcel_traffic_close(mpidata_parcel_traffic *traffic);

#endif
