/* Solver of the loop campaign, with one or several ranks: puts `u`, refreshes and asks at steps that follow from the
 * seed, and logs what it saw like loop/solving.py. Arguments: STEPS, STEP_US, SEED, percent of steps that refresh,
 * elements, percent of steps that ask, most rows of a question, least version of an answer, whether it puts `p`. */
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

enum { ROWS = 12, COLUMNS = 6, OPEN = 8, MOST = 3000 };
static int rank, size = 1;
static int64_t seed_of_job;
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

static int put_ragged(int64_t simulation, int64_t step) {
    float rows[3][2];
    int64_t first = 0;
    const int64_t count = (simulation + step + rank) % 4, shape[] = {count, 2};
    for (int64_t other = 0; other < rank; other++) first += (simulation + step + other) % 4;
    for (int64_t row = 0; row < count; row++) rows[row][0] = (float)(64 * simulation + step), rows[row][1] = (float)(first + row);
    return mpidata_put("p", rows, MPIDATA_FLOAT32, 2, shape);
}

typedef struct {
    int64_t rows, version;
    float x[MOST][3], y[MOST][3];
    int64_t k[MOST], v[MOST], call[MOST], n[MOST];
    mpidata_question question;
} asked;

static asked questions[OPEN];
static int64_t asks, most, least;
static int open_now;

static int ask(int64_t simulation, int64_t step, int number) {
    asked *one = &questions[number];
    one->rows = (simulation * 5 + step * 11 + rank * 3 + number * 7) % (most + 1);
    one->version = -1;
    for (int64_t row = 0; row < one->rows; row++) {
        for (int64_t column = 0; column < 3; column++) {
            one->x[row][column] = (float)((simulation * 7 + step * 3 + rank * 5 + number + 3 * row + column) % 1000);
            one->y[row][column] = -1;
        }
        one->k[row] = 1000000 * simulation + 1000 * step + row;
        one->v[row] = one->call[row] = one->n[row] = -1;
    }
    const int64_t shape[] = {one->rows, 3};
    const mpidata_array in[] = {{"x", one->x, MPIDATA_FLOAT32, 2, shape}, {"k", one->k, MPIDATA_INT64, 1, shape}};
    const mpidata_array out[] = {{"y", one->y, MPIDATA_FLOAT32, 2, shape},
                                 {"v", one->v, MPIDATA_INT64, 1, shape},
                                 {"call", one->call, MPIDATA_INT64, 1, shape},
                                 {"n", one->n, MPIDATA_INT64, 1, shape}};
    return mpidata_infer_begin(in, 2, out, 4, &one->version, &one->question);
}

static void check_answer(const asked *one) {
    must(one->version >= least, "version of an answer");
    for (int64_t row = 0; row < one->rows; row++) {
        for (int64_t column = 0; column < 3; column++)
            must((int64_t)one->y[row][column] == (int64_t)one->x[row][column] * (one->version % 1000 + column) + 1, "y");
        must(one->v[row] == one->k[row] + one->version, "rows of one version");
        must(one->call[row] > 0 && one->call[row] == one->call[0], "rows of one call");
        must(one->n[row] >= one->rows && one->n[row] == one->n[0], "rows of the call");
    }
}

/* Waits for the last open question, which is answered whatever has become of the simulation. */
static void take_answer(void) {
    asked *one = &questions[--open_now];
    must(!mpidata_infer_wait(&one->question) && !one->question, "wait for an answer");
    check_answer(one);
}

/* Asks one question and waits, asks several that stay open, or asks none. */
static int ask_some(int64_t simulation, int64_t step) {
    const int64_t kind = (simulation * 3 + step * 5 + rank) % 10;
    int status = MPIDATA_SUCCESS;
    if ((simulation * 7907 + step * 104723 + rank * 6151 + seed_of_job) % 100 >= asks) return MPIDATA_SUCCESS;
    for (int more = kind < 5 ? 1 : (int)kind - 2; more && open_now < OPEN; more--) {
        if ((status = ask(simulation, step, open_now))) return status;
        open_now++;
    }
    if (kind < 5) take_answer();
    return status;
}

/* Checks the answers to open questions, for which mpidata_next has waited. */
static void check_left(void) {
    while (open_now) check_answer(&questions[--open_now]);
}

int main(int argc, char **argv) {
    const int64_t steps = atoll(argv[1]), percent = atoll(argv[4]), elements = atoll(argv[5]);
    const int is_ragged = atoi(argv[9]);
    const unsigned pause_us = (unsigned)atoi(argv[2]);
    int64_t simulation;
    seed_of_job = atoll(argv[3]);
    asks = atoll(argv[6]), most = atoll(argv[7]), least = atoll(argv[8]);
    must(most <= MOST, "rows");
    join(argc, argv);
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        double alpha;
        int status = MPIDATA_SUCCESS;
        int64_t step = 0, version = 0;
        check_left();
        must(!mpidata_param("alpha", &alpha), "param");
        (void)fprintf(notes, "begin %lld\n", (long long)simulation);
        for (; step < steps + simulation % 3; step++) {
            if ((simulation * 7919 + step * 104729 + seed_of_job) % 100 < percent) {
                if ((status = mpidata_refresh(&version))) break;
                (void)fprintf(notes, "version %lld %lld\n", (long long)step, (long long)version);
                check(version, elements);
            }
            while (open_now && (simulation % 3 == 0 || step % 2 == 0)) take_answer();
            if ((status = ask_some(simulation, step))) break;
            status = put(alpha, step);
            if (!status && is_ragged) status = put_ragged(simulation, step);
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
    check_left();
    must(!mpidata_finalize(), "finalize");
#ifdef WITH_MPI
    MPI_Finalize();
#endif
    return 0;
}
