/* A trainer in C, to run its library under the sanitizers: draws batches of 4 of in_loop.c's samples, publishes after
 * each batch, and cancels each simulation after 20 of its samples. */
#include "trainer/draw.h"
#include "trainer/published/publish.h"
#include "trainer/trainer.h"

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 4, LINE = 5, ENOUGH = 20, MOST = 64, WEIGHTS = 30000 };

static void must(int status) {
    if (status == MPIDATA_SUCCESS) return;
    (void)fprintf(stderr, "%s: %s\n", mpidata_strerror(status), mpidata_last_error());
    _Exit(1);
}

/* Each value identifies the version. */
static void publish(int copies) {
    static double weight[WEIGHTS];
    static int64_t version;
    static const char *const names[] = {"weight", "none"};
    static const int32_t dtypes[] = {MPIDATA_FLOAT64, MPIDATA_INT8}, ndims[] = {1, 1};
    static const int64_t shapes[] = {WEIGHTS, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    const void *const values[] = {weight, NULL};
    for (int i = 0; i < WEIGHTS; i++) weight[i] = (double)(version + 1 + i);
    must(mpidata_trainer_publish(2, names, dtypes, ndims, shapes, values, copies, &version));
}

static int64_t cancel_known(const int64_t *simulation) {
    static int drawn[MOST];
    int64_t taken = 0, n = 0, all = 0;
    for (int i = 0; i < BATCH; i++) {
        if (++drawn[simulation[i]] != ENOUGH) continue;
        must(mpidata_trainer_cancel(&simulation[i], 1, &taken, &n));
        all += n;
    }
    return all;
}

int main(int argc, char **argv) {
    int level, status, rank, batches = 0;
    MPI_Fint trainers;
    int64_t step[BATCH], simulation[BATCH], cancelled = 0;
    double parameters[BATCH], time[BATCH];
    static float line[BATCH * LINE];
    void *const fields[] = {line};
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    must(mpidata_trainer_open(MPI_Comm_c2f(MPI_COMM_WORLD), &trainers));
    MPI_Comm_rank(MPI_Comm_f2c(trainers), &rank);
    must(mpidata_trainer_begin());
    must(mpidata_trainer_start(BATCH));
    publish(rank == 0);
    while ((status = mpidata_trainer_draw(fields, parameters, time, step, simulation, 0.1)) != MPIDATA_END) {
        if (status == MPIDATA_ERR_AGAIN) continue;
        must(status);
        for (int i = 0; i < BATCH; i++)
            if ((int64_t)line[i * LINE + 4] != 4 * step[i]) _Exit(1);
        cancelled += cancel_known(simulation);
        publish(rank == 0);
        batches++;
    }
    must(mpidata_trainer_close(60.0));
    must(mpidata_trainer_free());
    (void)printf("batches %d, cancelled %lld\n", batches, (long long)cancelled);
    return MPI_Finalize();
}
