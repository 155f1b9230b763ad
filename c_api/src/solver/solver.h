/* Entry points of the solver side besides those of mpidata.h and calls/bindings.h. */
#ifndef MPIDATA_SOLVER_H
#define MPIDATA_SOLVER_H

#include "asked/questions.h"

/* mpidata_init with Fortran handles. */
int mpidata_init_f(MPI_Fint world, MPI_Fint *group);

/* Report an error that ends the job, from a solver or trainer rank. */
int mpidata_report_error(const char *sentence);

/* -- For mpidata-carrier --------------------------------------------------------------------------------------------- */

/* Between two calls: let MPI progress, and listen to the scheduler. *stopping: whether the job is stopping; *under_way: whether
 * MPI must be called again soon. */
int mpidata_solver_look(int *stopping, int *under_way);

/* Also make this call in each mpidata_solver_look, and repeatedly while a call waits for trainers. It must not call functions
 * of mpidata.h. NULL: no longer. */
void mpidata_solver_meanwhile(int (*call)(void *), void *context);

/* For the questions of the program, separate from those of this rank's calls; mpidata_questions_close before mpidata_finalize. */
mpidata_questions *mpidata_solver_questions(int most);

/* Count a wait of the program, during which this rank waited for nothing else. */
void mpidata_solver_has_waited(double seconds);

/* Apply the stop that the group's rank 0 has learned of in mpidata_solver_look to this rank. Not collective, but all ranks of
 * the group must have made the same collective calls before. */
void mpidata_solver_stop(void);

/* Whether this array, passed to mpidata_iput, is still lent. */
int mpidata_solver_lends(const void *values);

/* Values of the current simulation's parameters, in the plan's order. */
const double *mpidata_solver_parameters(void);

/* Number of the try of the current simulation, from 1. */
int64_t mpidata_solver_try(void);

/* The plan of the job, until mpidata_finalize. */
const mpidata_plan *mpidata_solver_plan(void);

/* The name of this rank for sentences; returns its group. */
int mpidata_solver_who(char *text, size_t size);

#endif
