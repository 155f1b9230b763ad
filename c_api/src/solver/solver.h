/* Entry points of the solver side beside those of mpidata.h and calls/bindings.h. */
#ifndef MPIDATA_SOLVER_H
#define MPIDATA_SOLVER_H

#include "asked/questions.h"

/* mpidata_init with Fortran handles. */
int mpidata_init_f(MPI_Fint world, MPI_Fint *group);

/* Report an error that ends the job, from a solver or trainer rank. */
int mpidata_report_error(const char *sentence);

/* -- For mpidata-carrier --------------------------------------------------------------------------------------------- */

/* Between two calls: let MPI move data, and listen to the scheduler. *stopping: the job is; *under_way: whether MPI has to be
 * called again soon. */
int mpidata_solver_look(int *stopping, int *under_way);

/* Make this call, too, in each mpidata_solver_look, and again and again while a call waits for trainers. It makes none of mpidata.h.
 * NULL: no more. */
void mpidata_solver_meanwhile(int (*call)(void *), void *context);

/* For the questions of the program, which are no business of this rank's calls; mpidata_questions_close before mpidata_finalize. */
mpidata_questions *mpidata_solver_questions(int most);

/* The program has waited for so long, and this rank for nothing else. */
void mpidata_solver_has_waited(double seconds);

/* What the group's rank 0 has heard by mpidata_solver_look holds for this rank, too. Not collective, but all ranks of the
 * group must have made the same collective calls before. */
void mpidata_solver_stop(void);

/* Is this array, given to mpidata_iput, still lent? */
int mpidata_solver_lends(const void *values);

/* Values of the present simulation's parameters, in the plan's order. */
const double *mpidata_solver_parameters(void);

/* Which try of the present simulation it is, from 1. */
int64_t mpidata_solver_try(void);

/* The plan of the job, until mpidata_finalize. */
const mpidata_plan *mpidata_solver_plan(void);

/* This rank in a sentence, and which group it is of. */
int mpidata_solver_who(char *text, size_t size);

#endif
