/* Solver of the loop campaign, of one or several ranks: steps of `u`, refreshes at steps that follow from the seed, and notes
 * what it saw as loop/solving.py does. Arguments: STEPS, STEP_US, SEED, percent of the steps that refresh, elements. */
#ifdef CARRIED
#ifdef WITH_MPI
#include <mpi.h>
#endif
#include <mpidata_carried.h>
#else
#define WITH_MPI
#include <mpidata.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 12, COLUMNS = 6 };
static int rank, size = 1;
static FILE *notes;
#ifdef WITH_MPI
static MPI_Comm group;
#endif

static void must(int holds, const char *what) {
    if (holds) return;
    (void)fprintf(stderr, "NOT SO: %s: %s\n", what, mpidata_last_error());
    abort();
}

static void join(int argc, char **argv) {
    long long life;
    char path[96];
    struct timespec now;
    (void)argc, (void)argv;
#ifdef WITH_MPI
    MPI_Init(&argc, &argv);
#ifdef CARRIED
    group = MPI_COMM_WORLD;
#endif
#endif
#ifdef CARRIED
    must(!mpidata_attach(), "attach");
#else
    must(!mpidata_init(MPI_COMM_WORLD, &group), "init");
#endif
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    life = (long long)now.tv_sec * 1000000000 + now.tv_nsec;
#ifdef WITH_MPI
    MPI_Comm_rank(group, &rank);
    MPI_Comm_size(group, &size);
    MPI_Bcast(&life, 1, MPI_LONG_LONG, 0, group);
#endif
    (void)snprintf(path, sizeof path, "ran-%lld-%d", life, rank);
    must((notes = fopen(path, "a")) != NULL, "file");
    (void)setvbuf(notes, NULL, _IOLBF, 0);
}

static void check(int64_t version, int64_t elements) {
    mpidata_dtype dtype;
    int ndim;
    int64_t shape[MPIDATA_MAX_NDIM];
    const void *values;
    const int status = mpidata_published("weight", &dtype, &ndim, shape, &values);
    must(status == (version ? MPIDATA_SUCCESS : MPIDATA_ERR_AGAIN), "published");
    if (!version) return;
    must(ndim == 1 && shape[0] == elements && dtype == MPIDATA_FLOAT64, "shape");
    for (int64_t i = 0; i < elements; i++) must((int64_t)((const double *)values)[i] == i + version, "weight");
    must(!mpidata_published("step", &dtype, &ndim, shape, &values) && *(const int64_t *)values == version, "step");
}

static int put(double alpha, int64_t step) {
    static float u[ROWS * COLUMNS];
    const int64_t first = ROWS * rank / size, shape[] = {ROWS * (rank + 1) / size - first, COLUMNS}, start[] = {first, 0};
    for (int i = 0; i < ROWS * COLUMNS; i++) u[i] = (float)(alpha + (double)step);
    return mpidata_put_block("u", u, MPIDATA_FLOAT32, 2, shape, start);
}

int main(int argc, char **argv) {
    const int64_t steps = atoll(argv[1]), seed = atoll(argv[3]), percent = atoll(argv[4]), elements = atoll(argv[5]);
    const unsigned pause_us = (unsigned)atoi(argv[2]);
    int64_t simulation;
    join(argc, argv);
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        double alpha;
        int status = MPIDATA_SUCCESS;
        int64_t step = 0, version = 0;
        must(!mpidata_param("alpha", &alpha), "param");
        (void)fprintf(notes, "begin %lld\n", (long long)simulation);
        for (; step < steps + simulation % 3; step++) {
            if ((simulation * 7919 + step * 104729 + seed) % 100 < percent) {
                if ((status = mpidata_refresh(&version))) break;
                (void)fprintf(notes, "version %lld %lld\n", (long long)step, (long long)version);
                check(version, elements);
            }
            status = put(alpha, step);
#ifdef WITH_MPI
            if (!status) MPI_Barrier(group);
#endif
            if (!status) status = mpidata_step((double)step);
            if (status) break;
            (void)usleep(pause_us);
        }
        must(!status || status == MPIDATA_CANCELLED || status == MPIDATA_END, "status");
        (void)fprintf(notes, "end %lld %lld %s\n", (long long)simulation, (long long)step,
                      !status ? "complete" : status == MPIDATA_CANCELLED ? "cancelled" : "stopped");
        if (status == MPIDATA_END) break;
    }
    must(!mpidata_finalize(), "finalize");
#ifdef WITH_MPI
    MPI_Finalize();
#endif
    return 0;
}
