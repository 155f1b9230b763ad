/* Keeps the maximum of questions open, with 0 to 40000 rows each, and checks each answer: y = 2 x, and the sum of each
 * row. Every third rank asks nothing. Arguments: a factor for the number of rows, a file, and the number of letters
 * in it until which a simulation runs. */
#if defined(CARRIED) && !defined(WITH_MPI) /* a carried program, with one rank or its own MPI */
#include <mpidata_carried.h>
#elif defined(CARRIED)
#include <mpi.h>
#include <mpidata_carried.h>
#else
#include <mpi.h>
#include <mpidata.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

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

#if !defined(CARRIED) || defined(WITH_MPI)
#define HAS_MPI
static MPI_Comm group = MPI_COMM_NULL;
#endif
static int rank;

static void join(int *argc, char ***argv) {
    (void)argc, (void)argv;
#ifdef HAS_MPI
    MPI_Init(argc, argv);
    group = MPI_COMM_WORLD;
#endif
#ifdef CARRIED
    if (mpidata_attach()) exit(1);
#else
    if (mpidata_init(MPI_COMM_WORLD, &group)) exit(1);
#endif
#ifdef HAS_MPI
    MPI_Comm_rank(group, &rank);
#endif
}

/* Returns what rank 0 sees. */
static int has_letters(const char *path, long count) {
    struct stat status;
    int has = !stat(path, &status) && status.st_size >= count;
#ifdef HAS_MPI
    MPI_Bcast(&has, 1, MPI_INT, 0, group);
#endif
    return has;
}

int main(int argc, char **argv) {
    static const int64_t rows[OPEN] = {1, 0, 3, 40000, 17, 2000, 5, 1};
    asked open[OPEN];
    int64_t simulation;
    join(&argc, &argv);
    const int64_t times = argc > 1 ? atol(argv[1]) : 1;
    const int asks = rank % 3 < 2;
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        for (int step = 0; step < STEPS || (argc > 3 && !has_letters(argv[2], atol(argv[3]))); step++) {
            const float u[] = {1, 2, 3};
            const int64_t shape[] = {3};
            for (int i = 0; asks && i < OPEN; i++) ask(&open[i], rows[i] * times, (int)simulation + step + i);
            if (!rank && mpidata_put("u", u, MPIDATA_FLOAT32, 1, shape)) fail("mpidata_put");
            for (int i = OPEN - 1; asks && i >= 0; i--) check(&open[i]);
            if (mpidata_step(step)) break;
        }
    }
    mpidata_finalize();
#ifdef HAS_MPI
    MPI_Finalize();
#endif
    return 0;
}
