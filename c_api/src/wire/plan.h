/* The plan of a job: who is who, which fields and parameters. Read from the text that the scheduler broadcasts. */
#ifndef MPIDATA_PLAN_H
#define MPIDATA_PLAN_H

#include <stddef.h>

#include "base/status.h"

#define MPIDATA_NAME_MAX 128
#define MPIDATA_STEPS_MAX ((int64_t)1 << 36) /* of a simulation: more than a job has time for, and safe to calculate with */

enum { MPIDATA_ROLE_SCHEDULER = 0, MPIDATA_ROLE_TRAINER = 1, MPIDATA_ROLE_SOLVER = 2 };
enum { MPIDATA_POLICY_FIFO = 0, MPIDATA_POLICY_FIRO = 1, MPIDATA_POLICY_RESERVOIR = 2 };
enum { MPIDATA_TAIL_DROP = 0, MPIDATA_TAIL_REPEAT = 1 };

typedef struct {
    char name[MPIDATA_NAME_MAX];
    mpidata_dtype dtype;
    int ndim;
    int64_t shape[MPIDATA_MAX_NDIM];
    int64_t elements;
    size_t element_size;
} mpidata_field;

typedef struct {
    int world, trainers, groups, spares, ranks_per_group, window;
    int spawn; /* groups are spawned: the world has none */
    double timeout_s, start_timeout_s;
    char *run; /* run folder */
    uint64_t seed;
    int64_t simulations, validation;
    int policy, tail;
    int64_t capacity, watermark;
    int n_parameters, n_fields;
    char (*parameters)[MPIDATA_NAME_MAX];
    mpidata_field *fields;
    size_t slot_bytes; /* of all fields, each rounded up to 64 bytes */
} mpidata_plan;

/* Parse and check; on error nothing is left to free. */
int mpidata_plan_parse(const char *text, mpidata_plan *plan);
void mpidata_plan_free(mpidata_plan *plan);

/* Groups that are in the world from the start; spawned ones have higher numbers. */
int mpidata_plan_world_groups(const mpidata_plan *plan);

/* Role of a rank of the world; *index: which trainer or group; *rank_in_group: 0 for the others. */
int mpidata_plan_role(const mpidata_plan *plan, int rank, int *index, int *rank_in_group);
const char *mpidata_role_name(int role);

/* Whether it is a simulation of the job, of validation or not. */
int mpidata_plan_has(const mpidata_plan *plan, int64_t simulation);

/* Trainer that takes a sample, whatever the group or try. */
int mpidata_plan_trainer(const mpidata_plan *plan, int64_t simulation, int64_t step);

/* Index of a field or parameter, -1 if there is none. */
int mpidata_plan_field(const mpidata_plan *plan, const char *name);
int mpidata_plan_parameter(const mpidata_plan *plan, const char *name);

/* "'a', 'b' and 'c'": the declared names, for error messages. */
void mpidata_plan_field_names(const mpidata_plan *plan, char *text, size_t size);
void mpidata_plan_parameter_names(const mpidata_plan *plan, char *text, size_t size);

size_t mpidata_dtype_size(mpidata_dtype dtype); /* 0 for no dtype */
const char *mpidata_dtype_name(mpidata_dtype dtype);
MPI_Datatype mpidata_dtype_mpi(mpidata_dtype dtype);

#endif
