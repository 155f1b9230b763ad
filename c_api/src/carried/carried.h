/* Entry points of libmpidata_carried for Python, besides those of mpidata_carried.h and calls/bindings.h. */
#ifndef MPIDATA_CARRIED_CARRIED_H
#define MPIDATA_CARRIED_CARRIED_H

/* The text of the job's plan, until mpidata_finalize; NULL outside a job. */
const char *mpidata_carried_plan(void);

/* Publish why this process is about to end during a simulation: "raised ValueError: ...". Not collective, does not block. */
void mpidata_carried_last_words(const char *words);

/* Whether the simulation is cancelled, in a program of one rank. Not collective, does not block. */
int mpidata_carried_cancelled(void);

/* See solver/solver.h. */
int mpidata_report_error(const char *sentence);

#endif
