/* Leaves questions open across a cancel, mpidata_next and mpidata_finalize. Each is answered: y = 2 x. */
#ifdef CARRIED /* a carried program */
#include <mpidata_carried.h>
#else
#include <mpi.h>
#include <mpidata.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 3000, WIDTH = 4, OPEN = 3, N = ROWS * WIDTH };

typedef struct {
    float x[N], y[N];
    double sums[ROWS];
    int64_t version;
    mpidata_question question;
} asked;

static asked all[OPEN];

static void fail(const char *what) {
    fprintf(stderr, "asks_and_leaves: %s: %s\n", what, mpidata_last_error());
    abort();
}

static int ask(asked *one, int salt) {
    static const int64_t shape[] = {ROWS, WIDTH};
    for (int i = 0; i < N; i++) one->x[i] = (float)(i % 100 + salt);
    memset(one->y, 0, sizeof one->y);
    const mpidata_array in[] = {{"x", one->x, MPIDATA_FLOAT32, 2, shape}};
    const mpidata_array out[] = {{"y", one->y, MPIDATA_FLOAT32, 2, shape},
                                 {"sums", one->sums, MPIDATA_FLOAT64, 1, shape}};
    return mpidata_infer_begin(in, 1, out, 2, &one->version, &one->question);
}

static void check(const asked *one, const char *what) {
    for (int i = 0; i < N; i++)
        if (one->y[i] < 2 * one->x[i] || one->y[i] > 2 * one->x[i]) fail(what);
}

/* From now on the arrays belong to the program: the library must not write to them. */
static void take_back(asked *one) {
    for (int i = 0; i < N; i++) one->y[i] = -1;
}

static void check_untouched(const asked *one) {
    for (int i = 0; i < N; i++)
        if (one->y[i] > -1 || one->y[i] < -1) fail("an array was written to that was lent no more");
}

/* Steps until the simulation is cancelled; returns the last status. */
static int until_cancelled(int ends) {
    static const int64_t shape[] = {5};
    const float u[] = {1, 2, 3, 4, 5};
    int status = MPIDATA_SUCCESS;
    for (int step = 0; !status && step != ends; step++) {
        for (int i = 0; i < OPEN; i++)
            if (ask(&all[i], step)) fail("mpidata_infer_begin");
        float first[5];
        for (int i = 0; i < 5; i++) first[i] = (float)step + u[i];
        if (!(status = mpidata_put("u", first, MPIDATA_FLOAT32, 1, shape))) status = mpidata_step(step);
        for (int i = status ? 1 : 0; i < OPEN; i++) { /* after a cancel the first question stays open */
            if (mpidata_infer_wait(&all[i].question)) fail("mpidata_infer_wait");
            check(&all[i], "an answer is wrong");
        }
    }
    return status;
}

int main(int argc, char **argv) {
    int64_t simulation;
#ifdef CARRIED
    (void)argv;
    if (mpidata_attach()) return 1;
#else
    MPI_Comm group;
    MPI_Init(&argc, &argv);
    if (mpidata_init(MPI_COMM_WORLD, &group)) return 1;
#endif
    const int cancelled = argc > 1;
    int open = 0;
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        if (open) {
            check(&all[0], "mpidata_next has returned before the answer");
            take_back(&all[0]);
            if (mpidata_infer_wait(&all[0].question) || all[0].question) fail("wait for what next has waited for");
        }
        const int status = until_cancelled(cancelled ? -1 : 10);
        if (status != (cancelled ? MPIDATA_CANCELLED : MPIDATA_SUCCESS)) fail("mpidata_step");
        asked *again = &all[1];
        if (cancelled && ask(again, 0) != MPIDATA_CANCELLED) fail("infer of a cancelled simulation");
        if (!cancelled) {
            if (ask(&all[0], 5)) fail("mpidata_infer_begin");
            if (simulation % 2) {
                if (mpidata_fail("as asked")) fail("mpidata_fail");
                if (mpidata_infer_wait(&all[0].question)) fail("wait after fail");
                check(&all[0], "after fail");
                all[0].question = 0;
            }
        }
        open = all[0].question != 0;
        if (open && simulation == 2) break; /* mpidata_finalize waits for it */
    }
    const int waits = all[0].question != 0;
    if (mpidata_finalize()) fail("mpidata_finalize");
    if (waits) check(&all[0], "mpidata_finalize has returned before the answer");
    for (int i = 0; i < OPEN; i++) take_back(&all[i]);
#ifdef CARRIED
    const int status = 0;
#else
    const int status = MPI_Finalize();
#endif
    for (int i = 0; i < OPEN; i++) check_untouched(&all[i]);
    return status;
}
