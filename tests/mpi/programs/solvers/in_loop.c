/* Runs each simulation until it is cancelled: reads the published arrays in every third step, and asks two questions in
 * each step; their answers, y = 2 x, are checked after the step. All ranks of a group ask; the first one puts. */
#include <mpi.h>
#include <mpidata.h>
#include <stdio.h>
#include <stdlib.h>

enum { QUESTIONS = 2, WIDTH = 4, MOST = 9000 };

static float x[QUESTIONS][MOST * WIDTH], y[QUESTIONS][MOST * WIDTH];
static const int64_t rows[QUESTIONS] = {7, MOST};
static int rank;

static void must(int holds, const char *what) {
    if (holds) return;
    (void)fprintf(stderr, "NOT SO: %s: %s\n", what, mpidata_last_error());
    _Exit(1);
}

static int leaves(int status) { return status == MPIDATA_CANCELLED || status == MPIDATA_END; }

static int read_published(int64_t *read) {
    mpidata_dtype dtype;
    int ndim;
    int64_t version = 0, shape[MPIDATA_MAX_NDIM];
    const void *values;
    const int status = mpidata_refresh(&version);
    if (status) return status;
    must(version >= *read, "an older version");
    *read = version;
    if (!version) return MPIDATA_SUCCESS;
    must(!mpidata_published("weight", &dtype, &ndim, shape, &values), "mpidata_published");
    for (int64_t i = 0; i < shape[0]; i++) must((int64_t)((const double *)values)[i] == version + i, "one version");
    return MPIDATA_SUCCESS;
}

static int ask(int i, int64_t *version, mpidata_question *question) {
    const int64_t shape[] = {rows[i], WIDTH};
    for (int64_t k = 0; k < rows[i] * WIDTH; k++) x[i][k] = (float)((k + rank) % 1000);
    const mpidata_array in[] = {{"x", x[i], MPIDATA_FLOAT32, 2, shape}},
        out[] = {{"y", y[i], MPIDATA_FLOAT32, 2, shape}};
    return mpidata_infer_begin(in, 1, out, 1, version, question);
}

static int make_step(int64_t step, int64_t *read) {
    const int64_t shape[] = {5};
    float u[5];
    int64_t version[QUESTIONS];
    mpidata_question question[QUESTIONS] = {0};
    int status = step % 3 ? MPIDATA_SUCCESS : read_published(read);
    for (int i = 0; i < QUESTIONS && !status; i++) status = ask(i, &version[i], &question[i]);
    for (int i = 0; i < 5; i++) u[i] = (float)(step * i);
    if (!status && rank == 0) status = mpidata_put("u", u, MPIDATA_FLOAT32, 1, shape);
    if (!status) status = mpidata_step((double)step);
    for (int i = 0; i < QUESTIONS; i++) {
        if (!question[i] || mpidata_infer_wait(&question[i])) continue;
        for (int64_t k = 0; k < rows[i] * WIDTH; k++) must((int)y[i][k] == 2 * (int)x[i][k], "an answer");
    }
    must(!status || leaves(status), "a step");
    return status;
}

int main(int argc, char **argv) {
    MPI_Comm group;
    int64_t simulation, read = 0;
    MPI_Init(&argc, &argv);
    must(!mpidata_init(MPI_COMM_WORLD, &group), "mpidata_init");
    MPI_Comm_rank(group, &rank);
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS)
        for (int64_t step = 0; !make_step(step, &read); step++) continue;
    must(!mpidata_finalize(), "mpidata_finalize");
    (void)printf("read version %lld\n", (long long)read);
    return MPI_Finalize();
}
