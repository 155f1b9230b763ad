/* Constants of two ranks, with a new length in each try. In its first try simulation 0 loses rank 1 between constants
 * and first step, simulation 1 loses rank 0 between two constants, simulation 2 has a time that is not finite, and
 * 3 loses rank 1 in a step. 4 has no steps; 5 is abandoned before its first step. constants/lengths.py checks this. */
#include <fcntl.h>
#include <math.h>
#include <mpi.h>
#ifdef CARRIED
#include <mpidata_carried.h>
#else
#include <mpidata.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STEPS = 5, MOST = 64 };
static int rank, ranks, tried;
static int64_t simulation;

static void must(int holds) {
    if (!holds) exit(7);
}

static void dies(int64_t of, int who) {
    if (!tried && simulation == of && rank == who) (void)raise(SIGKILL);
}

/* Returns whether this simulation was started before. */
static int was_tried(MPI_Comm group) {
    char path[64];
    int found = 0;
    (void)snprintf(path, sizeof path, "begun-%lld", (long long)simulation);
    if (rank == 0) found = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600) < 0;
    (void)MPI_Bcast(&found, 1, MPI_INT, 0, group);
    return found;
}

static int64_t rows_of(int64_t all, int of) { return all * (of + 1) / ranks - all * of / ranks; }

static void put_constants(int64_t nodes) {
    const int64_t begin = nodes * rank / ranks, mine = rows_of(nodes, rank), mark = 10 * simulation + tried;
    double xy[2 * MOST];
    int64_t ends[2 * MOST], rows[MOST], edges = rank ? 2 : 1 + tried;
    int32_t back[MOST];
    mpidata_map *map;
    if (rank == ranks - 1) must(!mpidata_put("mark", &mark, MPIDATA_INT64, 0, NULL));
    for (int i = 0; i < 2 * nodes; i++) xy[i] = (double)(100 * mark + i);
    if (rank == simulation % ranks) must(!mpidata_put("xy", xy, MPIDATA_FLOAT64, 2, (int64_t[]){nodes, 2}));
    dies(1, 0);
    if (rank == 0 || simulation % 2) must(!mpidata_put("empty", xy, MPIDATA_FLOAT64, 2, (int64_t[]){0, 3}));
    for (int i = 0; i < 2 * edges; i++) ends[i] = nodes - 1 - rank;
    must(!mpidata_put("ends", ends, MPIDATA_INT64, 2, (int64_t[]){2, edges}));
    for (int i = 0; i < mine; i++) {
        rows[i] = nodes - 1 - begin - i;
        back[i] = (int32_t)(begin + i + 1);
    }
    must(!mpidata_map_create(mine, rows, &map));
    must(!mpidata_put_mapped("back", back, MPIDATA_INT32, 1, &mine, map));
    must(!mpidata_map_free(&map));
    dies(0, 1);
}

static int make_step(int64_t nodes, int step) {
    const int64_t mine = rows_of(nodes, rank), one = 1;
    const int32_t edge = rank ? 2 + tried : 0;
    double u[MOST];
    for (int i = 0; i < mine; i++) u[i] = (double)(10 * simulation + tried) + 0.01 * step;
    must(!mpidata_put("u", u, MPIDATA_FLOAT64, 1, &mine));
    if (step == 3) dies(3, 1);
    must(!mpidata_put("picks", &edge, MPIDATA_INT32, 1, &one));
    return mpidata_step(simulation == 2 && !tried && step == 3 ? (double)NAN : step);
}

int main(int argc, char **argv) {
    MPI_Comm group;
    (void)MPI_Init(&argc, &argv);
#ifdef CARRIED
    must(!mpidata_attach());
    group = MPI_COMM_WORLD;
#else
    must(!mpidata_init(MPI_COMM_WORLD, &group));
#endif
    (void)MPI_Comm_rank(group, &rank);
    (void)MPI_Comm_size(group, &ranks);
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        tried = was_tried(group);
        const int64_t nodes = 4 + simulation + 3 * tried;
        put_constants(nodes);
        if (simulation == 5) must(!mpidata_fail("as asked"));
        for (int step = 0, over = simulation == 4 || simulation == 5; step < STEPS && !over; step++) over = make_step(nodes, step);
    }
    const int status = mpidata_finalize();
    (void)MPI_Finalize();
    return status;
}
