/* The state of a solver rank between its calls, and the checks of each call before anything is sent to the job. transport.h
 * hides how it is sent. */
#ifndef MPIDATA_CALLS_H
#define MPIDATA_CALLS_H

#include "calls/transport.h"
#include "wire/plan.h"

enum { MPIDATA_OUTSIDE = 0, MPIDATA_JOINED, MPIDATA_LEFT };
enum { MPIDATA_LAME_HERE = 1, MPIDATA_LAME_ALL };

/* One per process, as there is one job. The transport sets `stopping`, `cancelled`, `lame`, `failed` and `broken`. */
typedef struct {
    int state;
    int alone;    /* outside a job */
    int running;  /* between mpidata_next and the end of its simulation */
    int failed;   /* MPIDATA_GIVEN_UP or MPIDATA_TRY_FAILED */
    int lame;     /* the time was not finite: calls fail until next. LAME_HERE: no other rank knows yet */
    int broken;   /* status of the error that ends the job: nothing more is sent */
    int stopping; /* the group must leave */
    int cancelled; /* the simulation is, as all ranks of the group know: calls have no effect until mpidata_next */
    int no_more;  /* mpidata_next has returned MPIDATA_END */
    int64_t simulation, step;
    int64_t *counts; /* of this rank in the current step: mpidata_plan_counts */
    int64_t *constants; /* if there are any: their counts in the simulation, of all ranks; then room for those of a step */
    const mpidata_plan *plan;
    const double *parameters; /* of the current simulation */
} mpidata_solver_calls;

extern mpidata_solver_calls mpidata_calls;

/* The start of each call within a simulation; returns MPIDATA_END if the job is stopping, MPIDATA_CANCELLED if the simulation
 * is cancelled. */
int mpidata_calls_enter_simulation(const char *call);

/* Refuse to join twice. */
int mpidata_calls_may_join(void);

/* This process has joined. plan: NULL outside a job. The arguments are used until mpidata_finalize. */
int mpidata_calls_begin(const mpidata_transport *transport, const mpidata_plan *plan, const double *parameters);

/* The first error of a call before mpidata_calls_begin; "": none. */
const char *mpidata_calls_early_error(void);

/* Add the place and the advice to the last error, report it to the job, which ends, and return the status. */
int mpidata_calls_misuse(int status, const char *advice);

/* Refuse a step in which the puts of all ranks, as counted, do not make each field whole. tells: set on the one rank of the
 * group that reports it. */
int mpidata_calls_check_cover(const int64_t *counts, int64_t step, int tells);

/* Check and stage a put; *put gets the place of the values. lend: without a copy, if possible. */
int mpidata_calls_put(mpidata_put_arguments *put, int lend);

/* The error of calls after a time that is not finite. */
int mpidata_calls_not_finite(void);

/* For calls in other files that are also allowed outside a simulation: the start of each, its end (which may end the process),
 * and the transport to the job (NULL: this process has not joined yet). */
int mpidata_calls_enter(const char *call);
int mpidata_calls_settle(int status);
const mpidata_transport *mpidata_calls_transport(void);

/* Start a step: no field was put yet. */
void mpidata_calls_empty_step(void);

#endif
