/* How a simulation has failed: its own code abandoned it, or only this try of it has failed. */
#ifndef MPIDATA_FAILED_H
#define MPIDATA_FAILED_H

enum { MPIDATA_GIVEN_UP = 1, MPIDATA_TRY_FAILED = 2 };

#endif
