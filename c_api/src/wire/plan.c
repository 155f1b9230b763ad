#include "wire/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(MPIDATA_PLAN_NDIM == MPIDATA_MAX_NDIM, "plan_text.h has another number of dimensions than mpidata.h");

/* mpidata.h is written by hand, the table of dtypes goes by its order. */
#define PLACE(in_c, name, type, kind, in_mpi, moments) PLACE_##in_c,
enum { BEFORE_DTYPES, MPIDATA_DTYPES(PLACE) BEHIND_DTYPES };
#define IN_ORDER(in_c, name, type, kind, in_mpi, moments) \
    _Static_assert((int)MPIDATA_##in_c == (int)PLACE_##in_c, "mpidata.h has another number for this dtype");
MPIDATA_DTYPES(IN_ORDER)
_Static_assert(sizeof(float) == 4 && sizeof(double) == 8, "float32 and float64 are no float and double here");
_Static_assert(sizeof(float _Complex) == 8 && sizeof(double _Complex) == 16, "complex numbers are not two floats here");

#ifndef MPIDATA_WITHOUT_MPI
MPI_Datatype mpidata_dtype_mpi(unsigned dtype) {
    switch (dtype) {
#define CASE(in_c, name, type, kind, in_mpi, moments) \
    case MPIDATA_##in_c: return in_mpi;
        MPIDATA_DTYPES(CASE)
    }
    return MPI_DATATYPE_NULL;
}
#endif

int mpidata_plan_parse(const char *text, mpidata_plan *plan) {
    char wrong[MPIDATA_PLAN_WRONG];
    switch (mpidata_plan_read(text, plan, wrong)) {
    case MPIDATA_PLAN_GOOD: return MPIDATA_SUCCESS;
    case MPIDATA_PLAN_BAD:
        return mpidata_error(MPIDATA_ERR_JOB,
                             "The plan %s. Use the mpidata command and libmpidata of one installation.",
                             wrong);
    default: return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory while reading the plan.");
    }
}

int mpidata_plan_has(const mpidata_plan *plan, int64_t simulation) {
    return simulation >= 0 && simulation < plan->simulations + plan->validation;
}

int mpidata_plan_lose(mpidata_plan *plan, int trainer) {
    if (!plan->lost && !(plan->lost = calloc((size_t)plan->trainers, sizeof *plan->lost))) return -1;
    plan->lost[plan->n_lost++] = trainer;
    return 0;
}

static int is_among(const int *trainers, int n, int trainer) {
    while (n > 0 && trainers[n - 1] != trainer) n--;
    return n > 0;
}

int mpidata_plan_has_lost(const mpidata_plan *plan, int trainer) { return is_among(plan->lost, plan->n_lost, trainer); }

/* The i-th of those that lived on after the first n deaths. */
static int living(const mpidata_plan *plan, int n, int64_t i) {
    int trainer = -1;
    while (i >= 0)
        if (!is_among(plan->lost, n, ++trainer)) i--;
    return trainer;
}

/* The runs of one that has died go round among those that lived on: each takes the same share of them. */
static int heir(const mpidata_plan *plan, int trainer, int64_t turn) {
    for (int d = 0; d < plan->n_lost; d++) {
        const int left = plan->trainers - d - 1;
        if (plan->lost[d] != trainer) continue;
        trainer = living(plan, d + 1, turn % left);
        turn /= left;
    }
    return trainer;
}

int mpidata_plan_trainer(const mpidata_plan *plan, int64_t simulation, int64_t step) {
    const int64_t run = simulation + step / plan->samples_run;
    const int trainer = (int)(run % plan->trainers);
    return plan->n_lost ? heir(plan, trainer, run / plan->trainers) : trainer;
}

/* First run of a simulation that is this trainer's. */
static int64_t first_run(const mpidata_plan *plan, int trainer, int64_t simulation) {
    return (trainer - simulation % plan->trainers + plan->trainers) % plan->trainers;
}

int64_t mpidata_plan_own(const mpidata_plan *plan, int trainer, int64_t simulation, int64_t steps) {
    int64_t run = plan->samples_run, round = run * plan->trainers;
    int64_t rest = steps % round - first_run(plan, trainer, simulation) * run;
    return steps / round * run + (rest <= 0 ? 0 : rest < run ? rest : run);
}

int64_t mpidata_plan_number(const mpidata_plan *plan, int64_t step) {
    int64_t run = plan->samples_run;
    return step / (run * plan->trainers) * run + step % run;
}

int64_t mpidata_plan_step(const mpidata_plan *plan, int trainer, int64_t simulation, int64_t number) {
    int64_t run = plan->samples_run;
    return (number / run * plan->trainers + first_run(plan, trainer, simulation)) * run + number % run;
}

int64_t mpidata_plan_span(const mpidata_plan *plan) {
    return (plan->samples_window - 1) * (int64_t)plan->samples_stride;
}

int mpidata_plan_trainers(const mpidata_plan *plan, int64_t simulation, int64_t step, int trainers[2]) {
    trainers[0] = mpidata_plan_trainer(plan, simulation, step);
    if (step < plan->samples_run || step % plan->samples_run >= mpidata_plan_span(plan)) return 1;
    trainers[1] = mpidata_plan_trainer(plan, simulation, step - plan->samples_run);
    return trainers[1] == trainers[0] ? 1 : 2;
}

int mpidata_plan_field(const mpidata_plan *plan, const char *name) {
    for (int i = 0; i < plan->n_fields; i++)
        if (!strcmp(plan->fields[i].name, name)) return i;
    return -1;
}

int mpidata_plan_parameter(const mpidata_plan *plan, const char *name) {
    for (int i = 0; i < plan->n_parameters; i++)
        if (!strcmp(plan->parameters[i], name)) return i;
    return -1;
}

const char *mpidata_plan_text(const mpidata_plan *plan, int parameter, double value) {
    const size_t length = strlen(plan->parameters[parameter]);
    double number = 0;
    for (char **text = plan->texts; text && *text; text++) {
        if (strncmp(*text, plan->parameters[parameter], length) || (*text)[length] != ' ') continue;
        if (number++ >= value) return *text + length + 1;
    }
    return NULL;
}

static void append_name(char *text, size_t size, const char *name, int i, int n) {
    size_t used = strlen(text);
    const char *separator = i == 0 ? "" : i == n - 1 ? " and " : ", ";
    if (used < size) (void)snprintf(text + used, size - used, "%s'%s'", separator, name);
}

void mpidata_plan_field_names(const mpidata_plan *plan, char *text, size_t size) {
    text[0] = '\0';
    for (int i = 0; i < plan->n_fields; i++) append_name(text, size, plan->fields[i].name, i, plan->n_fields);
}

void mpidata_plan_parameter_names(const mpidata_plan *plan, char *text, size_t size) {
    text[0] = '\0';
    for (int i = 0; i < plan->n_parameters; i++) append_name(text, size, plan->parameters[i], i, plan->n_parameters);
}
