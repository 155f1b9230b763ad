/* The communicators over which solvers and loaders send: the world's, and that of each spawned group or loader. */
#ifndef MPIDATA_INLETS_H
#define MPIDATA_INLETS_H

#include "receive/incoming/state.h"

/* Also listen to a spawned group or loader; the first inlet is the world. */
int mpidata_incoming_add(mpidata_incoming *in, MPI_Comm comm, int role, int number);

/* That of a group or loader; NULL: there is none. */
mpidata_inlet *mpidata_inlet_of(const mpidata_incoming *in, int role, int number);

/* Not while MPI may still write for it. */
void mpidata_inlet_close(mpidata_incoming *in, mpidata_inlet *inlet);

#endif
