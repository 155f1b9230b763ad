#include "wire/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(MPIDATA_PLAN_NDIM == MPIDATA_MAX_NDIM, "plan_text.h has another number of dimensions than mpidata.h");

/* mpidata.h is written by hand; the table of dtypes must have its order. */
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

/* Number of trainers that train at first. */
static int first_ones(const mpidata_plan *plan) { return plan->trainers - plan->trainer_spares; }

int mpidata_plan_change(mpidata_plan *plan, int trainer, int joins) {
    const mpidata_change *last = plan->n_changes ? &plan->changes[plan->n_changes - 1] : NULL;
    if (!plan->changes && !(plan->changes = calloc((size_t)mpidata_plan_most_changes(plan), sizeof *plan->changes))) return -1;
    mpidata_change change = {.trainer = trainer, .joins = joins, .training = calloc((size_t)plan->trainers, sizeof(int))};
    if (!change.training) return -1;
    for (int t = 0, i = 0; t < plan->trainers; t++) {
        const int trained = last ? i < last->n && last->training[i] == t : t < first_ones(plan);
        i += trained;
        if (t == trainer ? joins : trained) change.training[change.n++] = t;
    }
    plan->changes[plan->n_changes++] = change;
    return 0;
}

int mpidata_plan_change_by(mpidata_plan *plan, int code) {
    return mpidata_plan_change(plan, mpidata_change_trainer(code), mpidata_change_joins(code));
}

int mpidata_plan_trains(const mpidata_plan *plan, int trainer) {
    if (!plan->n_changes) return trainer < first_ones(plan);
    const mpidata_change *last = &plan->changes[plan->n_changes - 1];
    int n = last->n;
    while (n > 0 && last->training[n - 1] != trainer) n--;
    return n > 0;
}

int mpidata_plan_training(const mpidata_plan *plan) {
    return plan->n_changes ? plan->changes[plan->n_changes - 1].n : first_ones(plan);
}

/* Place of a trainer among those that trained before a change. */
static int place_of(const mpidata_change *change, int trainer) {
    int i = 0, place = 0;
    for (; change->training[i] != trainer; i++) place += change->training[i] != change->trainer;
    return place;
}

/* Where a simulation begins in a round of n: multiples of the golden ratio fill it evenly, even for few simulations. Each
 * trainer and change has another offset, so that no two of them coincide. */
static int64_t begins_at(int64_t n, int trainer, int change, int64_t simulation) {
    static const uint64_t golden = 0x9E3779B97F4A7C15u;
    uint64_t from = ((uint64_t)change * 65536 + (uint64_t)trainer + 1) * golden; /* mixed by SplitMix64 */
    from = (from ^ (from >> 30)) * 0xBF58476D1CE4E5B9u;
    from = (from ^ (from >> 27)) * 0x94D049BB133111EBu;
    const uint64_t at = (from ^ (from >> 31)) + (uint64_t)simulation * golden;
    return (int64_t)(((at >> 32) * (uint64_t)n) >> 32);
}

/* The runs of a leaving trainer are dealt to the others in turn. A joining one gets each n-th run of each of the others, of n
 * trainers now; but no validation samples, which stay where they are. Each trainer's runs are then renumbered. A simulation may
 * have few runs, or one: each simulation begins elsewhere in the round. */
static int heir(const mpidata_plan *plan, int trainer, int64_t simulation, int64_t turn) {
    for (int i = 0; i < plan->n_changes; i++) {
        const mpidata_change *change = &plan->changes[i];
        if (change->joins && simulation >= plan->simulations) continue;
        const int64_t n = change->n, number = turn + begins_at(n, trainer, i, simulation), round = number / n, at = number % n;
        if (change->joins && at < n - 1) {
            turn = round * (n - 1) + at;
        } else if (change->joins) {
            turn = round * (n - 1) + place_of(change, trainer);
            trainer = change->trainer;
        } else if (change->trainer == trainer) {
            turn = round;
            trainer = change->training[at];
        }
    }
    return trainer;
}

int mpidata_plan_trainer(const mpidata_plan *plan, int64_t simulation, int64_t step) {
    const int64_t run = simulation + step / plan->samples_run;
    const int trainers = first_ones(plan), trainer = (int)(run % trainers);
    return plan->n_changes ? heir(plan, trainer, simulation, run / trainers) : trainer;
}

/* First run of a simulation that belongs to this trainer. */
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
