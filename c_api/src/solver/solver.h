/* Entry points of the solver side beside those of mpidata.h. */
#ifndef MPIDATA_SOLVER_H
#define MPIDATA_SOLVER_H

#include "mpidata.h"

/* mpidata_init with Fortran handles. */
int mpidata_init_f(MPI_Fint world, MPI_Fint *group);

/* As mpidata_fail, but the simulation may be tried again: what runs it has failed, not the simulation. */
int mpidata_fail_try(const char *reason);

/* Report an error that ends the job, from a solver or trainer rank. */
int mpidata_report_error(const char *sentence);

#endif
