/* Keeps as many questions open as may be, of 0 to 40000 rows, and checks each answer: y = 2 x, and the sum of each
 * row. */
#include <mpi.h>
#include <mpidata.h>
#include <stdio.h>
#include <stdlib.h>

enum { OPEN = 8, WIDTH = 4, STEPS = 10 };

typedef struct {
    int64_t rows, version;
    float *x, *y;
    double *sums;
    mpidata_question question;
} asked;

static void fail(const char *what) {
    fprintf(stderr, "asks: %s: %s\n", what, mpidata_last_error());
    abort();
}

static void ask(asked *one, int64_t rows, int salt) {
    const size_t n = (size_t)rows * WIDTH;
    one->rows = rows;
    one->version = -1;
    one->x = malloc(n * sizeof(float) + 1);
    one->y = malloc(n * sizeof(float) + 1);
    one->sums = malloc((size_t)rows * sizeof(double) + 1);
    if (!one->x || !one->y || !one->sums) abort();
    for (size_t i = 0; i < n; i++) one->x[i] = (float)((i * 7 + (size_t)salt) % 1000);
    const int64_t shape[] = {rows, WIDTH};
    const mpidata_array in[] = {{"x", one->x, MPIDATA_FLOAT32, 2, shape}};
    const mpidata_array out[] = {{"y", one->y, MPIDATA_FLOAT32, 2, shape},
                                 {"sums", one->sums, MPIDATA_FLOAT64, 1, shape}};
    if (mpidata_infer_begin(in, 1, out, 2, &one->version, &one->question)) fail("mpidata_infer_begin");
}

static void check(asked *one) {
    if (mpidata_infer_wait(&one->question)) fail("mpidata_infer_wait");
    if (one->question || one->version != 0) fail("a question stays open");
    for (int64_t row = 0; row < one->rows; row++) {
        double sum = 0;
        for (int i = 0; i < WIDTH; i++) {
            sum += (double)one->x[row * WIDTH + i];
            if (one->y[row * WIDTH + i] < 2 * one->x[row * WIDTH + i] ||
                one->y[row * WIDTH + i] > 2 * one->x[row * WIDTH + i])
                fail("a wrong y");
        }
        if (one->sums[row] < sum || one->sums[row] > sum) fail("a wrong sum");
    }
    free(one->x);
    free(one->y);
    free(one->sums);
}

int main(int argc, char **argv) {
    static const int64_t rows[OPEN] = {1, 0, 3, 40000, 17, 2000, 5, 1};
    asked open[OPEN];
    int64_t simulation;
    MPI_Comm group;
    MPI_Init(&argc, &argv);
    if (mpidata_init(MPI_COMM_WORLD, &group)) return 1;
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        for (int step = 0; step < STEPS; step++) {
            const float u[] = {1, 2, 3};
            const int64_t shape[] = {3};
            for (int i = 0; i < OPEN; i++) ask(&open[i], rows[i], (int)simulation + step + i);
            for (int i = OPEN - 1; i >= 0; i--) check(&open[i]);
            if (mpidata_put("u", u, MPIDATA_FLOAT32, 1, shape)) fail("mpidata_put");
            if (mpidata_step(step)) break;
        }
    }
    mpidata_finalize();
    return MPI_Finalize();
}
