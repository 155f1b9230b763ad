/* The plan of a job, as the library reads it: from the text that the scheduler broadcasts. */
#ifndef MPIDATA_PLAN_H
#define MPIDATA_PLAN_H

#include <stddef.h>

#include "base/status.h"
#include "plan_text/plan_text.h"

#define MPIDATA_STEPS_MAX ((int64_t)1 << 36) /* of a simulation: more than any job can make, and safe in arithmetic */

/* Parse and check; on error nothing is left to free. */
int mpidata_plan_parse(const char *text, mpidata_plan *plan);

/* Whether it is a simulation of the job, for validation or not. */
int mpidata_plan_has(const mpidata_plan *plan, int64_t simulation);

/* Trainer that takes the sample that begins at this step, for any group or try. */
int mpidata_plan_trainer(const mpidata_plan *plan, int64_t simulation, int64_t step);

/* A trainer has died, or no longer trains: from now on the others have its steps, and keep their own. Or one has joined: from
 * now on it has an equal share of each of the others' steps. Returns 0, or -1 if memory is exhausted. */
int mpidata_plan_change(mpidata_plan *plan, int trainer, int joins);

/* A change as one number: the trainer, or -1 - trainer if it has joined. */
static inline int mpidata_change_code(int trainer, int joins) { return joins ? -1 - trainer : trainer; }
static inline int mpidata_change_joins(int code) { return code < 0; }
static inline int mpidata_change_trainer(int code) { return code < 0 ? -1 - code : code; }
int mpidata_plan_change_by(mpidata_plan *plan, int code);

/* The most possible changes: each trainer joins and leaves at most once. */
static inline int mpidata_plan_most_changes(const mpidata_plan *plan) { return 2 * plan->trainers; }

/* Whether a trainer trains: it lives, and is not a waiting spare. */
int mpidata_plan_trains(const mpidata_plan *plan, int trainer);

/* Number of trainers that train. */
int mpidata_plan_training(const mpidata_plan *plan);

/* Before any change: the number of this trainer's own steps, at which its samples begin, among the first `steps` steps. */
int64_t mpidata_plan_own(const mpidata_plan *plan, int trainer, int64_t simulation, int64_t steps);

/* Number of an own step among the own steps of its trainer, from 0, and the step that has this number. */
int64_t mpidata_plan_number(const mpidata_plan *plan, int64_t step);
int64_t mpidata_plan_step(const mpidata_plan *plan, int trainer, int64_t simulation, int64_t number);

/* Steps from the first one of a sample to its last: 0 if it is one step. */
int64_t mpidata_plan_span(const mpidata_plan *plan);

/* Trainers that need a step for their samples: that of its run and, for the first steps of a run, also that of the previous
 * run. Returns their number, 1 or 2. */
int mpidata_plan_trainers(const mpidata_plan *plan, int64_t simulation, int64_t step, int trainers[2]);

/* The text of a parameter with this number; NULL if it is not a text. */
const char *mpidata_plan_text(const mpidata_plan *plan, int parameter, double value);

/* Index of a field or parameter, -1 if there is none. */
int mpidata_plan_field(const mpidata_plan *plan, const char *name);
int mpidata_plan_parameter(const mpidata_plan *plan, const char *name);

/* "'a', 'b' and 'c'": the declared names, for error messages. */
void mpidata_plan_field_names(const mpidata_plan *plan, char *text, size_t size);
void mpidata_plan_parameter_names(const mpidata_plan *plan, char *text, size_t size);

#ifndef MPIDATA_WITHOUT_MPI
MPI_Datatype mpidata_dtype_mpi(unsigned dtype);
#endif

#endif
