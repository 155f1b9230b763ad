/* The text of a plan: the roles of the ranks, the fields, parameters and programs. mpidata/run/plan writes it, plan_reading.c
 * parses it, for the library and for mpidata-rank, so it needs no MPI and no other file. */
#ifndef MPIDATA_PLAN_TEXT_H
#define MPIDATA_PLAN_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define MPIDATA_NAME_MAX 128
#define MPIDATA_ITEM_MAX 232 /* name of what a loader was reading, reported if it is lost; with the final 0 */
#define MPIDATA_PLAN_CHANNELS 4096 /* of the statistics of all fields */
#define MPIDATA_PLAN_NDIM 6 /* MPIDATA_MAX_NDIM of mpidata.h, which needs MPI */

enum {
    MPIDATA_ROLE_SCHEDULER = 0,
    MPIDATA_ROLE_TRAINER = 1,
    MPIDATA_ROLE_SOLVER = 2,
    MPIDATA_ROLE_LOADER = 3,
    MPIDATA_ROLE_SERVER = 4,
    MPIDATA_ROLE_INFERENCE = 5, /* runs the model for solvers that ask */
    MPIDATA_ROLE_LEARNER = 6,   /* runs the sampler */
    MPIDATA_ROLE_MATE = 7,      /* trains with a trainer: a further rank of its replica */
    MPIDATA_ROLES
};

/* Buffer policies: the name after MPIDATA_POLICY_, and that in the plan. */
#define MPIDATA_POLICIES(X) X(FIFO, fifo) X(FIRO, firo) X(RESERVOIR, reservoir)
#define MPIDATA_POLICY_OF(in_c, name) MPIDATA_POLICY_##in_c,
enum { MPIDATA_POLICIES(MPIDATA_POLICY_OF) };

enum { MPIDATA_TAIL_DROP = 0, MPIDATA_TAIL_REPEAT = 1 };

/* A named length, which differs between samples. */
typedef struct {
    char name[MPIDATA_NAME_MAX];
    int64_t at_most; /* 0: there is no limit */
} mpidata_length;
enum { MPIDATA_WHOLE_FIELD = -1, MPIDATA_NO_STATISTICS = -2 }; /* in place of an axis of channels */

typedef struct {
    char name[MPIDATA_NAME_MAX];
    unsigned dtype; /* a mpidata_dtype of mpidata.h */
    int ndim;
    int64_t shape[MPIDATA_PLAN_NDIM];
    int64_t elements; /* in each step: 0 if a dimension varies, and for a constant */
    int varying;      /* the dimension whose length differs between samples, with extent 0 here; -1: none */
    int length;       /* its index in plan.lengths; -1: none */
    int64_t row;      /* elements for each index of that dimension */
    int given;        /* of an optional field: the number of a sample that tells whether it was put; -1: it must be put */
    int index_of;     /* of an index field: the length that its values count along, from `base`; -1: none */
    int base;
    int per_simulation; /* a constant: put once per simulation, before its first step */
    size_t element_size;
    int channel_axis; /* of its statistics, or one of the above */
    int moments;      /* number of its first moments among those of all fields */
} mpidata_field;

/* A change from which on one more, or one fewer, trainer trains (mpidata_plan_change). */
typedef struct {
    int trainer, joins;
    int n, *training; /* those that train then, in ascending order */
} mpidata_change;

typedef struct {
    int world, trainers, groups, spares, ranks_per_group, in_flight;
    int spawn;          /* groups are spawned: the world has none */
    int carried;        /* number of ranks of a carried program, 0: there is none */
    int carried_each;   /* a carried program runs one simulation */
    int per_simulation; /* a program runs one simulation */
    int fault_tolerant; /* with ULFM */
    int trainers_at_least; /* while this many live, the others continue after a trainer's death; 0: it ends the job */
    int trainer_spares;    /* of the trainers: the last ones, which wait for a place */
    int ranks_per_replica; /* a trainer and its mates, which hold one copy of the model together */
    double timeout_s, start_timeout_s; /* of silence */
    double join_timeout_s;             /* for joining the job */
    double trainers_timeout_s;         /* of silence of a server; only the scheduler uses it for trainers */
    int servers;        /* parameter servers: the last ranks of the world */
    int loaders, loader_spares;
    int loaders_spawn; /* loaders are spawned */
    double loader_timeout_s, loader_start_timeout_s; /* of silence */
    int inference, inference_spares; /* ranks that answer solvers, before the servers */
    int learner, learner_spares; /* the rank that runs the sampler, 0 or 1, and its spares, after those */
    double inference_timeout_s, inference_start_timeout_s; /* of silence */
    char *run, *folder; /* run folder; that of the job file */
    char *statistics;   /* channel_axis of each field; NULL: there are no statistics */
    int n_moments;      /* of all channels of all fields; 0: there are no statistics */
    int journal;        /* each trainer keeps one */
    char *replay;       /* folder of the run that is replayed, or NULL */
    uint64_t seed;
    int64_t simulations, validation;
    int samples_window, samples_stride, samples_run; /* steps of a sample, their distance; number of consecutive samples
                                                      * that go to one trainer */
    int policy, tail;
    int64_t capacity, watermark;
    int capacity_in_bytes;
    double repeats; /* draws per sample of a reservoir; 0: unlimited */
    int n_parameters, n_fields;
    char (*parameters)[MPIDATA_NAME_MAX];
    char **whole; /* those that are whole numbers; NULL, or ends with NULL */
    char **texts; /* "name text" for each possible text of a parameter, in the order of their numbers; NULL, or ends with
                   * NULL */
    mpidata_field *fields;
    int n_constants; /* number of fields that are put once per simulation */
    int n_lengths;
    mpidata_length *lengths;
    int n_numbers; /* of a sample: its lengths, then for each optional field whether it was put */
    size_t slot_bytes; /* of all fields of a step that do not vary, each rounded up to 64 bytes */
    char **arguments[MPIDATA_ROLES], **environment[MPIDATA_ROLES]; /* of the programs; NULL, or ends with NULL */
    int n_changes; /* of the set of training trainers, in the scheduler's order */
    mpidata_change *changes;
} mpidata_plan;

enum { MPIDATA_PLAN_GOOD = 0, MPIDATA_PLAN_BAD, MPIDATA_PLAN_NO_MEMORY };
enum { MPIDATA_PLAN_WRONG = 320 };

/* Parse and check; returns MPIDATA_PLAN_GOOD, or the kind of error, with nothing left to free. `wrong` has room for
 * MPIDATA_PLAN_WRONG characters: the error in the plan, a sentence without "The plan" and full stop. */
int mpidata_plan_read(const char *text, mpidata_plan *plan, char *wrong);
void mpidata_plan_free(mpidata_plan *plan);

/* Size of the counts of a rank in a step: elements put, by field, and if samples have numbers, the puts of each
 * field. */
static inline int mpidata_plan_counts(const mpidata_plan *plan) { return plan->n_fields * (plan->n_numbers ? 2 : 1); }

/* Whether each rank of a group sends a piece in each step, even without a block: if samples have numbers, it shows which parts
 * a field has, and if they have constants, that those of the rank will come. */
static inline int mpidata_plan_all_send(const mpidata_plan *plan) { return plan->n_numbers || plan->n_constants; }

/* Groups, loaders, inference ranks and learners that are in the world from the start, including spares; spawned ones have
 * higher numbers. */
int mpidata_plan_world_groups(const mpidata_plan *plan);
int mpidata_plan_world_loaders(const mpidata_plan *plan);
int mpidata_plan_world_inference(const mpidata_plan *plan);
int mpidata_plan_world_learners(const mpidata_plan *plan);

/* Mates of all trainers: the ranks of the world after the trainers, trainer by trainer. */
int mpidata_plan_mates(const mpidata_plan *plan);

/* Role of a rank of the world; *index: which trainer, group, loader, server, inference rank or learner, or a mate's trainer;
 * *rank_in_group: a mate's place in the replica, from 1; 0 for the others. */
int mpidata_plan_role(const mpidata_plan *plan, int rank, int *index, int *rank_in_group);
const char *mpidata_role_name(int role);

/* All dtypes, in the order of mpidata_dtype: the name in mpidata.h without MPIDATA_, that in the plan, the type in C, the
 * kind of number, as in the type codes of NumPy, the name in MPI, and how moments are computed: from the type itself
 * (DIRECT), from the value as float64 (WIDENED), or not at all (NO). All tables by dtype are made from this. */
#define MPIDATA_DTYPES(X)                                                     \
    X(FLOAT32, float32, float, "f", MPI_FLOAT, DIRECT)                        \
    X(FLOAT64, float64, double, "f", MPI_DOUBLE, DIRECT)                      \
    X(INT32, int32, int32_t, "i", MPI_INT32_T, DIRECT)                        \
    X(INT64, int64, int64_t, "i", MPI_INT64_T, DIRECT)                        \
    X(UINT8, uint8, uint8_t, "u", MPI_UINT8_T, DIRECT)                        \
    X(INT8, int8, int8_t, "i", MPI_INT8_T, DIRECT)                            \
    X(INT16, int16, int16_t, "i", MPI_INT16_T, DIRECT)                        \
    X(UINT16, uint16, uint16_t, "u", MPI_UINT16_T, DIRECT)                    \
    X(UINT32, uint32, uint32_t, "u", MPI_UINT32_T, DIRECT)                    \
    X(UINT64, uint64, uint64_t, "u", MPI_UINT64_T, DIRECT)                    \
    X(BOOL, bool, uint8_t, "b", MPI_UINT8_T, NO)                              \
    X(FLOAT16, float16, uint16_t, "f", MPI_UINT16_T, WIDENED)                 \
    X(BFLOAT16, bfloat16, uint16_t, "f", MPI_UINT16_T, WIDENED)               \
    X(COMPLEX64, complex64, float _Complex, "c", MPI_C_FLOAT_COMPLEX, NO)     \
    X(COMPLEX128, complex128, double _Complex, "c", MPI_C_DOUBLE_COMPLEX, NO)

enum { MPIDATA_MOMENTS_NO = 0, MPIDATA_MOMENTS_DIRECT, MPIDATA_MOMENTS_WIDENED };

size_t mpidata_dtype_size(unsigned dtype); /* 0 for no dtype */
const char *mpidata_dtype_name(unsigned dtype);

#endif
