/* A solver that computes nothing and sends samples as fast as it can; the first and last element are the step number.
 * Arguments: folder, elements (float32) of a sample, samples before the clock starts, put | iput */
#include "gate.h"

#include <mpidata.h>
#include <string.h>

enum { ARRAYS = 8 }; /* as many as in ceiling.c */

static void must(int status) {
    if (status == MPIDATA_SUCCESS || status == MPIDATA_END) return;
    (void)fprintf(stderr, "%s: %s\n", mpidata_strerror(status), mpidata_last_error());
    exit(1);
}

int main(int argc, char **argv) {
    int rank, size;
    int64_t simulation;
    MPI_Comm group;
    if (argc != 5) return 2;
    MPI_Init(&argc, &argv);
    must(mpidata_init(MPI_COMM_WORLD, &group));
    MPI_Comm_rank(group, &rank);
    MPI_Comm_size(group, &size);
    volatile int64_t *gate = gate_map(argv[1]);
    int64_t elements = atol(argv[2]), warm = atol(argv[3]);
    int lend = !strcmp(argv[4], "iput"), arrays = lend ? ARRAYS : 1;
    int64_t own = elements / size, first = rank * own;
    float *u[ARRAYS];
    for (int i = 0; i < arrays; i++) u[i] = gate_memory((size_t)own * sizeof(float));
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS)
        for (int64_t step = 0;; step++) {
            while (step == warm && !gate[GATE_GO] && !gate[GATE_STOP]) {
                must(mpidata_wait()); /* sends packed samples and lets MPI move them */
                (void)usleep(200);
            }
            /* All ranks of a group must leave at the same step; they are less than 32 steps apart. */
            if (rank == 0 && gate[GATE_STOP] && (size == 1 || !gate[GATE_LAST])) gate[GATE_LAST] = step + (size > 1) * 64;
            if (gate[GATE_STOP] && (size == 1 || (gate[GATE_LAST] && step >= gate[GATE_LAST]))) break;
            float *values = u[step % arrays];
            if (lend) must(mpidata_wait_for(values));
            if (rank == 0) values[0] = (float)step;
            if (rank == size - 1) values[own - 1] = (float)step;
            must(lend ? mpidata_iput("u", values, MPIDATA_FLOAT32, 1, &own, &first)
                      : mpidata_put_block("u", values, MPIDATA_FLOAT32, 1, &own, &first));
            if (mpidata_step((double)step)) break;
        }
    must(mpidata_finalize());
    for (int i = 0; i < arrays; i++) free(u[i]);
    return MPI_Finalize();
}
