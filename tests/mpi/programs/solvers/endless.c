/* Runs each simulation until it is cancelled, and writes its number of steps to ended-SIMULATION-RANK. Each rank puts
 * its rows of u. A barrier between put and step keeps ranks from ending a step before the others. Argument: "fail" to
 * abandon each cancelled simulation, which does not count as a failure. */
#ifdef CARRIED
#ifdef WITH_MPI
#include <mpi.h>
#endif
#include <mpidata_carried.h>
#else
#include <mpidata.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 4, COLUMNS = 6 };
static int rank, size = 1;
static float u[ROWS * COLUMNS];

#if defined CARRIED && !defined WITH_MPI
static void meet(void) {}
#else
static MPI_Comm group;
static void meet(void) { MPI_Barrier(group); }
#endif

static void must(int holds, const char *what) {
    if (holds) return;
    (void)fprintf(stderr, "NOT SO: %s: %s\n", what, mpidata_last_error());
    exit(1);
}

static int put(void) {
    const int64_t shape[] = {ROWS / size, COLUMNS}, start[] = {ROWS / size * rank, 0};
    return mpidata_put_block("u", u, MPIDATA_FLOAT32, 2, shape, start);
}

static int run(int64_t simulation, int64_t *steps) {
    for (*steps = 0;; ++*steps) {
        for (int i = 0; i < ROWS * COLUMNS; i++) u[i] = (float)(1000 * simulation + *steps);
        int status = put();
        if (!status) {
            meet();
            status = mpidata_step((double)*steps);
        }
        if (status) return status;
        (void)usleep(1000);
    }
}

static void join(int argc, char **argv) {
    (void)argc, (void)argv;
#ifdef CARRIED
#ifdef WITH_MPI
    MPI_Init(&argc, &argv);
    group = MPI_COMM_WORLD;
#endif
    must(!mpidata_attach(), "attach");
#else
    MPI_Init(&argc, &argv);
    must(!mpidata_init(MPI_COMM_WORLD, &group), "init");
#endif
#if !defined CARRIED || defined WITH_MPI
    MPI_Comm_rank(group, &rank);
    MPI_Comm_size(group, &size);
#endif
}

int main(int argc, char **argv) {
    const int fails = argc > 1 && !strcmp(argv[1], "fail");
    int64_t simulation, steps;
    join(argc, argv);
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        char path[64];
        double alpha;
        const int status = run(simulation, &steps);
        if (status == MPIDATA_END) break;
        must(status == MPIDATA_CANCELLED, "cancelled");
        must(put() == MPIDATA_CANCELLED && mpidata_step(0) == MPIDATA_CANCELLED, "cancelled until next");
        must(mpidata_param("alpha", &alpha) == MPIDATA_SUCCESS, "param");
        if (fails) must(mpidata_fail("it is of no use") == MPIDATA_CANCELLED, "fail");
        (void)snprintf(path, sizeof path, "ended-%lld-%d", (long long)simulation, rank);
        FILE *file = fopen(path, "w");
        must(file && fprintf(file, "%lld", (long long)steps) > 0 && !fclose(file), "file");
    }
    must(!mpidata_finalize(), "finalize");
#if !defined CARRIED || defined WITH_MPI
    MPI_Finalize();
#endif
    return 0;
}
