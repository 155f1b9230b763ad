/* Solver that reads the published arrays: it makes steps until version 3, and checks all that it reads against
 * published/values.py with 100 elements; u is the version of each step. */
#ifdef CARRIED
#ifdef WITH_MPI
#include <mpi.h>
#endif
#include <mpidata_carried.h>
#else
#include <mpidata.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNTIL = 3, ELEMENTS = 100 };

static void must(int right, const char *what, int64_t version) {
    if (right) return;
    (void)fprintf(stderr, "wrong in version %lld: %s (%s)\n", (long long)version, what, mpidata_last_error());
    abort();
}

static const void *get(const char *name, mpidata_dtype dtype, int ndim, const int64_t *shape, int64_t version) {
    mpidata_dtype is;
    int dimensions;
    int64_t extents[MPIDATA_MAX_NDIM];
    const void *values = NULL;
    const int status = mpidata_published(name, &is, &dimensions, extents, &values);
    must(status == (version ? MPIDATA_SUCCESS : MPIDATA_ERR_AGAIN), name, version);
    if (!version) return NULL;
    must(is == dtype && dimensions == ndim && !memcmp(extents, shape, (size_t)ndim * sizeof *shape), name, version);
    return values;
}

static void check(int64_t version) {
    const int64_t elements = ELEMENTS, matrix[] = {2, 3}, none[] = {0, 3};
    const double *weight = get("weight", MPIDATA_FLOAT64, 1, &elements, version);
    const float *bias = get("bias", MPIDATA_FLOAT32, 2, matrix, version);
    const int64_t *step = get("step", MPIDATA_INT64, 0, NULL, version);
    (void)get("none", MPIDATA_INT16, 2, none, version);
    if (!version) return;
    for (int i = 0; i < ELEMENTS; i++)
        must(weight[i] >= i + (double)version && weight[i] <= i + (double)version, "weight", version);
    for (int i = 0; i < 6; i++)
        must(bias[i] >= (float)(i - version) && bias[i] <= (float)(i - version), "bias", version);
    must(*step == version, "step", version);
}

int main(int argc, char **argv) {
    int rank = 0;
    int64_t simulation;
#ifdef CARRIED
#ifdef WITH_MPI
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#endif
    if (mpidata_attach()) return 1;
#else
    MPI_Comm group;
    MPI_Init(&argc, &argv);
    if (mpidata_init(MPI_COMM_WORLD, &group)) return 1;
    MPI_Comm_rank(group, &rank);
#endif
    (void)argc, (void)argv;
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        int64_t version = 0, shape[] = {4, 6};
        for (int step = 0; version < UNTIL || step < 3; step++) {
            float u[24];
            const int status = mpidata_refresh(&version);
            if (status == MPIDATA_END) break;
            must(status == MPIDATA_SUCCESS, "refresh", version);
            check(version);
            for (int i = 0; i < 24; i++) u[i] = (float)version;
            if (rank == 0) must(mpidata_put("u", u, MPIDATA_FLOAT32, 2, shape) == MPIDATA_SUCCESS, "put", version);
            if (mpidata_step(step)) break;
        }
    }
    must(mpidata_finalize() == MPIDATA_SUCCESS, "finalize", 0);
#if !defined(CARRIED) || defined(WITH_MPI)
    MPI_Finalize();
#endif
    return 0;
}
