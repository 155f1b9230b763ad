/* Solver of the kill campaign: a field 'u' of any size, in one block per rank (rank r of P has r+1 shares), and a scalar
 * 'mark'. u[i] = 4096 simulation + 64 step + i mod 61, mark = 64 simulation + step.
 * Arguments: elements of u, steps, "put" or "iput", "together" (a collective call in each step) or "apart",
 * microseconds of work in each step. */
#ifdef CARRIED /* a carried program, with one rank or its own MPI */
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
#include <string.h>
#include <unistd.h>

static void must(int status) {
    if (status == MPIDATA_SUCCESS || status == MPIDATA_END) return;
    (void)fprintf(stderr, "%s: %s\n", mpidata_strerror(status), mpidata_last_error());
    exit(1);
}

static int64_t share(int64_t extent, int rank, int size) { return extent * rank * (rank + 1) / (size * (size + 1)); }

int main(int argc, char **argv) {
    int rank = 0, size = 1;
    if (argc != 6) return 2;
#ifdef WITH_MPI
    MPI_Comm group = MPI_COMM_WORLD;
    MPI_Init(&argc, &argv);
#endif
#ifdef CARRIED
    must(mpidata_attach());
#else
    must(mpidata_init(MPI_COMM_WORLD, &group));
#endif
#ifdef WITH_MPI
    MPI_Comm_rank(group, &rank);
    MPI_Comm_size(group, &size);
#endif
    int64_t elements = atol(argv[1]), steps = atol(argv[2]);
    int lend = !strcmp(argv[3], "iput"), together = !strcmp(argv[4], "together");
    useconds_t work = (useconds_t)atol(argv[5]);
    int64_t start = share(elements, rank, size), own = share(elements, rank + 1, size) - start;
    float *u = malloc((size_t)(own ? own : 1) * sizeof *u);
    if (!u) return 3;
    int64_t simulation;
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        for (int64_t step = 0; step < steps; step++) {
            if (work) usleep(work);
#ifdef WITH_MPI
            if (together) MPI_Barrier(group);
#endif
            int64_t base = 4096 * simulation + 64 * step, mark = 64 * simulation + step, at = start % 61;
            for (int64_t i = 0; i < own; i++) {
                u[i] = (float)(base + at);
                if (++at == 61) at = 0;
            }
            must(lend ? mpidata_iput("u", u, MPIDATA_FLOAT32, 1, &own, &start)
                      : mpidata_put_block("u", u, MPIDATA_FLOAT32, 1, &own, &start));
            if (rank == step % size) must(mpidata_put("mark", &mark, MPIDATA_INT64, 0, NULL));
            int status = mpidata_step(0.5 * (double)step);
            must(status);
            if (lend) must(mpidata_wait_for(u));
            if (status == MPIDATA_END) break;
        }
    }
    must(mpidata_finalize());
    free(u);
#ifdef WITH_MPI
    return MPI_Finalize();
#else
    return together < 0;
#endif
}
