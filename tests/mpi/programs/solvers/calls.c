/* Makes the calls that random_fields/calls.py has written to files. Argument: the number of steps of a simulation. */
#ifdef CARRIED
#include <mpidata_carried.h>
#else
#include <mpidata.h>
#endif
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { END, PUT, BLOCK, IPUT, MAPPED, INDICES, STRIDED, KILL };
enum { HOW, DTYPE, NDIM, BYTES, EXTRAS, HEAD };
enum { MOST = 64 }; /* calls in a step */

static int rank;
static void *lent[MOST]; /* until the step is sent */
static int n_lent;

static void must(int right) {
    if (!right) exit(1);
}

static void read_all(FILE *file, void *to, size_t bytes) { must(!bytes || fread(to, bytes, 1, file) == 1); }

/* Puts the values with a gap of one element after each. */
static int put_strided(const char *name, const char *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                       const int64_t *start, size_t bytes) {
    int64_t elements = 1, strides[8];
    for (int d = ndim - 1; d >= 0; d--) elements *= shape[d];
    const size_t size = elements ? bytes / (size_t)elements : 1;
    int64_t stride = 2 * (int64_t)size;
    for (int d = ndim - 1; d >= 0; stride *= shape[d--]) strides[d] = stride;
    char *spread = malloc(2 * bytes + 1);
    must(spread != NULL);
    memset(spread, 0x55, 2 * bytes);
    for (int64_t i = 0; i < elements; i++) memcpy(spread + 2 * (size_t)i * size, values + (size_t)i * size, size);
    const int status = mpidata_put_strided(name, spread, dtype, ndim, shape, start, strides);
    free(spread);
    return status;
}

static int by_map(int how, const char *name, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                  const int64_t *rows, int64_t n) {
    mpidata_map *map = NULL;
    must(!mpidata_map_create(n, rows, &map));
    const int status = how == MAPPED ? mpidata_put_mapped(name, values, dtype, ndim, shape, map)
                                     : mpidata_put_indices(name, values, dtype, ndim, shape, map);
    must(!mpidata_map_free(&map));
    return status;
}

static int make(int how, const char *name, void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                const int64_t *extra, int64_t n_extra, size_t bytes) {
    switch (how) {
    case PUT: return mpidata_put(name, values, dtype, ndim, shape);
    case BLOCK: return mpidata_put_block(name, values, dtype, ndim, shape, extra);
    case IPUT: return mpidata_iput(name, values, dtype, ndim, shape, extra);
    case STRIDED: return put_strided(name, values, dtype, ndim, shape, extra, bytes);
    default: return by_map(how, name, values, dtype, ndim, shape, extra, n_extra);
    }
}

/* Makes the next call; returns 0 at the end of the step. */
static int make_next(FILE *file) {
    int64_t head[HEAD], shape[8] = {0}, *extra = NULL;
    char name[64];
    read_all(file, &head[HOW], sizeof head[HOW]);
    if (head[HOW] == END) return 0;
    read_all(file, head + 1, sizeof head - sizeof *head);
    must(head[NDIM] <= 8 && n_lent < MOST);
    read_all(file, shape, (size_t)head[NDIM] * sizeof *shape);
    if (head[EXTRAS] >= 0) must((extra = malloc((size_t)head[EXTRAS] * sizeof *extra + 1)) != NULL);
    if (extra) read_all(file, extra, (size_t)head[EXTRAS] * sizeof *extra);
    read_all(file, name, sizeof name);
    char *values = lent[n_lent++] = malloc((size_t)head[BYTES] + 1);
    must(values != NULL);
    read_all(file, values, (size_t)head[BYTES]);
    if (head[HOW] != KILL)
        must(!make((int)head[HOW], name, values, (mpidata_dtype)head[DTYPE], (int)head[NDIM], shape, extra, head[EXTRAS],
                   (size_t)head[BYTES]));
    else if (open(name, O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0)
        (void)raise(SIGKILL);
    free(extra);
    return 1;
}

static void make_step(int64_t simulation, int step) {
    char path[64];
    double time;
    (void)snprintf(path, sizeof path, "calls/%lld-%d-%d", (long long)simulation, step, rank);
    FILE *file = fopen(path, "rb");
    must(file != NULL);
    while (make_next(file)) continue;
    read_all(file, &time, sizeof time);
    (void)fclose(file);
    must(!mpidata_step(time));
    must(!mpidata_wait());
    while (n_lent) free(lent[--n_lent]);
}

int main(int argc, char **argv) {
    int64_t simulation;
#ifdef CARRIED
    must(!mpidata_attach());
#else
    MPI_Comm group;
    (void)MPI_Init(&argc, &argv);
    must(!mpidata_init(MPI_COMM_WORLD, &group));
    (void)MPI_Comm_rank(group, &rank);
#endif
    must(argc == 2);
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS)
        for (int step = 0; step < atoi(argv[1]); step++) make_step(simulation, step);
    const int status = mpidata_finalize();
#ifndef CARRIED
    (void)MPI_Finalize();
#endif
    return status;
}
