/* How a simulation has failed: its own code gave it up, or this try of it was no good. */
#ifndef MPIDATA_FAILED_H
#define MPIDATA_FAILED_H

enum { MPIDATA_GIVEN_UP = 1, MPIDATA_TRY_FAILED = 2 };

#endif
