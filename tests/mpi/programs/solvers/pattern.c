/* Sends fields whose every element is a function of (simulation, step, index): value = 4096 simulation + 64 step +
 * flat index mod 61, exact in float32 for simulation < 1000, step < 64. Each field is put in uneven blocks along its
 * first dimension (rank r of P has r+1 shares), 'scalar' by rank 0, 'whole' by rank step mod P; 'cube' is split along
 * its last dimension. Arguments: steps (simulation s has steps + s mod 3); "copy", "iput", "slow" (50 ms a step) or
 * "stops" (by SIGSTOP, at the end); the last extent of 'cube'; and, for a carried program that is started for each
 * simulation, the simulation's number. */
#ifdef CARRIED /* a carried program, with one rank or its own MPI */
#ifdef WITH_MPI
#include <mpi.h>
#endif
#include <mpidata_carried.h>
#else
#include <mpidata.h>
#endif
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static double value(int64_t simulation, int64_t step, int64_t index) {
    return 4096.0 * (double)simulation + 64.0 * (double)step + (double)(index % 61);
}

static int rank, size, use_iput, slow;
static int64_t depth = 900;

static void must(int status) {
    if (status == MPIDATA_SUCCESS || status == MPIDATA_END) return;
    (void)fprintf(stderr, "%s: %s\n", mpidata_strerror(status), mpidata_last_error());
    exit(1);
}

static int64_t share(int64_t extent, int r) { return extent * r * (r + 1) / (size * (size + 1)); }

static void put_part(const char *name, const double *values, int ndim, const int64_t *shape, const int64_t *start) {
    must(use_iput ? mpidata_iput(name, values, MPIDATA_FLOAT64, ndim, shape, start)
                  : mpidata_put_block(name, values, MPIDATA_FLOAT64, ndim, shape, start));
}

/* Returns this rank's part of `shape`, cut along one dimension, in newly allocated memory that the caller frees. */
static double *part(int64_t simulation, int64_t step, int ndim, const int64_t *shape, int cut, int64_t *own,
                    int64_t *start) {
    int64_t n = 1, at[3] = {0};
    for (int d = 0; d < ndim; d++) {
        start[d] = d == cut ? share(shape[d], rank) : 0;
        own[d] = d == cut ? share(shape[d], rank + 1) - start[d] : shape[d];
        n *= own[d];
    }
    double *values = malloc((size_t)(n ? n : 1) * sizeof *values);
    if (!values) abort();
    for (int64_t i = 0; i < n; i++) {
        int64_t index = 0;
        for (int d = 0; d < ndim; d++) index = index * shape[d] + start[d] + at[d];
        values[i] = value(simulation, step, index);
        for (int d = ndim - 1; d >= 0 && ++at[d] == own[d]; d--) at[d] = 0;
    }
    return values;
}

static int step_once(int64_t simulation, int64_t step) {
    const int64_t line[1] = {37}, plane[2] = {13, 70}, cube[3] = {5, 4, depth};
    int64_t own[3], start[3];
    double *a = part(simulation, step, 1, line, 0, own, start);
    put_part("line", a, 1, own, start);
    double *b = part(simulation, step, 2, plane, 0, own, start);
    put_part("plane", b, 2, own, start);
    double *c = part(simulation, step, 3, cube, 2, own, start);
    put_part("cube", c, 3, own, start);
    int64_t whole[3];
    for (int i = 0; i < 3; i++) whole[i] = (int64_t)value(simulation, step, i);
    if (step % size == rank) must(mpidata_put("whole", whole, MPIDATA_INT64, 1, (int64_t[]){3}));
    double scalar = value(simulation, step, 0);
    if (rank == 0) must(mpidata_put("scalar", &scalar, MPIDATA_FLOAT64, 0, NULL));
    if (slow) (void)usleep(50000);
    int status = mpidata_step(0.25 * (double)step);
    must(status);
    if (use_iput && step % 2) must(mpidata_wait());
    for (int i = 0; use_iput && i < 3; i++) must(mpidata_wait_for((double *[]){a, b, c}[i]));
    free(a);
    free(b);
    free(c);
    return status;
}

#ifdef CARRIED
/* A program that is started for each simulation also learns its number from the environment and an argument. */
static void check_told(int64_t simulation, const char *argument) {
    const char *number = getenv("MPIDATA_SIMULATION"), *alpha = getenv("MPIDATA_PARAM_ALPHA");
    double value;
    must(mpidata_param("alpha", &value));
    if (!number && !alpha && !argument) return;
    if (number && alpha && argument && atol(number) == simulation && strtod(alpha, NULL) == value && atol(argument) == simulation)
        return;
    (void)fprintf(stderr, "told of another simulation\n");
    exit(1);
}

/* Fails in the middle of simulation 1, once per folder: "exit3", "exit0", "segv", or "abort" by the program's MPI. */
static void end_badly(const char *how, int64_t simulation, int64_t step) {
    if (simulation != 1 || step != 3 || rank != size - 1 || !strchr("eas", *how) || !strcmp(how, "slow") || !strcmp(how, "stops")) return;
    int file = open("ended", O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (file < 0) return;
    if (!strcmp(how, "exit3")) _exit(3);
    if (!strcmp(how, "exit0")) _exit(0);
    if (!strcmp(how, "segv")) (void)raise(SIGSEGV);
#ifdef WITH_MPI
    if (!strcmp(how, "abort")) MPI_Abort(MPI_COMM_WORLD, 5);
#endif
}
#endif

int main(int argc, char **argv) {
    int64_t simulation;
#ifdef CARRIED
    size = 1;
#ifdef WITH_MPI
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
#endif
    must(mpidata_attach());
#else
    MPI_Init(&argc, &argv);
    MPI_Comm group;
    must(mpidata_init(MPI_COMM_WORLD, &group));
    MPI_Comm_rank(group, &rank);
    MPI_Comm_size(group, &size);
#endif
    int64_t steps = argc > 1 ? atol(argv[1]) : 10;
    slow = argc > 2 && !strcmp(argv[2], "slow");
    use_iput = argc > 2 && !strcmp(argv[2], "iput");
    if (argc > 3) depth = atol(argv[3]);
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
#ifdef CARRIED
        check_told(simulation, argc > 4 ? argv[4] : NULL);
#endif
        for (int64_t step = 0; step < steps + simulation % 3; step++) {
#ifdef CARRIED
            end_badly(argc > 2 ? argv[2] : "", simulation, step);
#endif
            if (step_once(simulation, step)) break;
        }
    }
    must(mpidata_finalize());
    if (argc > 2 && !strcmp(argv[2], "stops")) (void)raise(SIGSTOP);
#if defined(CARRIED) && !defined(WITH_MPI)
    return 0;
#else
    return MPI_Finalize();
#endif
}
