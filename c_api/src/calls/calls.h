/* Where a solver rank stands between its calls, and what each call checks before any of it goes to the job. How it gets there is
 * behind transport.h. */
#ifndef MPIDATA_CALLS_H
#define MPIDATA_CALLS_H

#include "calls/transport.h"
#include "wire/plan.h"

enum { MPIDATA_OUTSIDE = 0, MPIDATA_JOINED, MPIDATA_LEFT };
enum { MPIDATA_LAME_HERE = 1, MPIDATA_LAME_ALL };

/* One per process, as there is one job. The transport sets `stopping`, `cancelled`, `lame`, `failed` and `broken` where it hears so. */
typedef struct {
    int state;
    int alone;    /* outside a job */
    int running;  /* between next and the close of its simulation */
    int failed;   /* MPIDATA_GIVEN_UP or MPIDATA_TRY_FAILED */
    int lame;     /* the time was not finite: calls fail until next. LAME_HERE: no other rank knows yet */
    int broken;   /* status of what ends the job: nothing is sent any more */
    int stopping; /* the group is told to leave */
    int cancelled; /* the simulation is, as all ranks of the group know: calls do nothing until next */
    int no_more;  /* next has returned MPIDATA_END */
    int64_t simulation, step;
    int64_t *counts; /* of this rank in the present step: mpidata_plan_counts */
    int64_t *constants; /* where there are any: counts of the present simulation's, of all ranks; then room for those of a step with them */
    const mpidata_plan *plan;
    const double *parameters; /* of the present simulation */
} mpidata_solver_calls;

extern mpidata_solver_calls mpidata_calls;

/* What each call within a simulation begins with; MPIDATA_END where the job is stopping, MPIDATA_CANCELLED where the simulation
 * is cancelled. */
int mpidata_calls_enter_simulation(const char *call);

/* Refuse to join twice. */
int mpidata_calls_may_join(void);

/* This process has joined. plan: NULL outside a job. All are used until mpidata_finalize. */
int mpidata_calls_begin(const mpidata_transport *transport, const mpidata_plan *plan, const double *parameters);

/* The first error of a call before that; "": none. */
const char *mpidata_calls_early_error(void);

/* Add the place and the advice to the last error, tell the job, which ends, and return the status. */
int mpidata_calls_misuse(int status, const char *advice);

/* Refuse a step in which what all ranks have put, as counted, does not make each field whole. tells: on one rank of the group,
 * which says so. */
int mpidata_calls_check_cover(const int64_t *counts, int64_t step, int tells);

/* Check and stage what is put; says where the values are. lend: without a copy, where it can. */
int mpidata_calls_put(mpidata_put_arguments *put, int lend);

/* The error of calls after a time that is not finite. */
int mpidata_calls_not_finite(void);

/* For calls of other files that may come outside a simulation, too: what each begins with, how it ends (which may end the process),
 * and the way to the job (NULL: this process has not joined yet). */
int mpidata_calls_enter(const char *call);
int mpidata_calls_settle(int status);
const mpidata_transport *mpidata_calls_transport(void);

/* No field was put yet in the present step. */
void mpidata_calls_empty_step(void);

#endif
