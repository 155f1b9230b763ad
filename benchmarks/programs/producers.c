/* One of many producers: computes, then puts a sample, until the end; computing is a sleep, which needs no core. The
 * first and last element are the sample's number among all. Arguments: folder, producers, elements (float32) of a
 * sample, samples before the clock starts, microseconds of computing, put | iput */
#include "gate.h"

#include <mpidata.h>
#include <string.h>

/* First words of the arrays with one word per producer, as in board.py. */
enum { HELD = 64, BEGAN = 128, ARRAYS = 2 };

static void must(int status) {
    if (status == MPIDATA_SUCCESS || status == MPIDATA_END) return;
    (void)fprintf(stderr, "%s: %s\n", mpidata_strerror(status), mpidata_last_error());
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void begin_put(volatile int64_t *gate, int64_t producer) { gate[BEGAN + producer] = now_ns(); }

static void end_put(volatile int64_t *gate, int64_t producer) {
    const int64_t began = gate[BEGAN + producer];
    gate[BEGAN + producer] = 0;
    gate[HELD + producer] += now_ns() - began;
}

int main(int argc, char **argv) {
    int64_t producer;
    MPI_Comm group;
    if (argc != 7) return 2;
    MPI_Init(&argc, &argv);
    must(mpidata_init(MPI_COMM_WORLD, &group));
    volatile int64_t *gate = gate_map(argv[1]);
    const int64_t producers = atol(argv[2]), elements = atol(argv[3]), warm = atol(argv[4]);
    const useconds_t computing = (useconds_t)atol(argv[5]);
    const int lend = !strcmp(argv[6], "iput"), arrays = lend ? ARRAYS : 1;
    float *u[ARRAYS];
    for (int i = 0; i < arrays; i++) u[i] = gate_memory((size_t)elements * sizeof(float));
    while (mpidata_next(&producer) == MPIDATA_SUCCESS) /* one simulation each */
        for (int64_t step = 0;; step++) {
            while (step == warm && !gate[GATE_GO] && !gate[GATE_STOP]) {
                must(mpidata_wait()); /* sends packed samples and lets MPI move them */
                (void)usleep(200);
            }
            if (gate[GATE_STOP]) break;
            float *values = u[step % arrays];
            begin_put(gate, producer);
            if (lend) must(mpidata_wait_for(values)); /* the computation overwrites it */
            end_put(gate, producer);
            if (step >= warm) (void)usleep(computing);
            values[0] = values[elements - 1] = (float)(step * producers + producer);
            begin_put(gate, producer);
            must((lend ? mpidata_iput : mpidata_put_block)("u", values, MPIDATA_FLOAT32, 1, &elements, &(int64_t){0}));
            const int status = mpidata_step((double)step);
            end_put(gate, producer);
            if (status) break;
        }
    must(mpidata_finalize());
    for (int i = 0; i < arrays; i++) free(u[i]);
    return MPI_Finalize();
}
