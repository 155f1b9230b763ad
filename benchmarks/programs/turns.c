/* The solver of turns.py: computes nothing, and sends a number of samples each time it is its turn; each rank puts its
 * part. Arguments: folder, elements (float32) of a sample, and one of: `varying`, 0.5 to 1.5 times as many elements;
 * `lent`, 8 arrays lent in turn; `arrays`, 8 arrays put in turn; `simulations`, which have 100 steps; `constants`, the
 * same with 1 MB put before each. Compiled with CARRIED it is not a rank of the job. Its arrays are in huge pages, like
 * those of the hand-written code with which it is compared (ceiling.c). */
#include "gate.h"

#include <string.h>

#ifdef CARRIED
#include <mpidata_carried.h>
#else
#include <mpidata.h>
#endif

enum { PAUSE_US = 500, STEPS = 100, CONSTANT = 1 << 18, ARRAYS = 8 };

static void must(int status) {
    if (status == MPIDATA_SUCCESS || status == MPIDATA_END) return;
    (void)fprintf(stderr, "%s: %s\n", mpidata_strerror(status), mpidata_last_error());
    exit(1);
}

#ifdef CARRIED
static void enter(int argc, char **argv, int64_t *rank, int64_t *ranks) {
    (void)argc, (void)argv;
    *rank = 0;
    *ranks = 1;
    must(mpidata_attach());
}

static int leave(void) { return 0; }
#else
static void enter(int argc, char **argv, int64_t *rank, int64_t *ranks) {
    MPI_Comm group;
    int own, all;
    (void)MPI_Init(&argc, &argv);
    must(mpidata_init(MPI_COMM_WORLD, &group));
    (void)MPI_Comm_rank(group, &own);
    (void)MPI_Comm_size(group, &all);
    *rank = own;
    *ranks = all;
}

static int leave(void) { return MPI_Finalize(); }
#endif

int main(int argc, char **argv) {
    int64_t simulation, rank, ranks;
    if (argc < 3) return 2;
    const char *how = argc > 3 ? argv[3] : "";
    const int varying = !strcmp(how, "varying"), constants = !strcmp(how, "constants"), lent = !strcmp(how, "lent");
    const int arrays = lent || !strcmp(how, "arrays") ? ARRAYS : 1;
    const int64_t steps = constants || !strcmp(how, "simulations") ? STEPS : INT64_MAX, constant = CONSTANT;
    enter(argc, argv, &rank, &ranks);
    volatile int64_t *gate = gate_map(argv[1]);
    const int64_t elements = atol(argv[2]) / ranks, first = rank * elements;
    float *all[ARRAYS], *mesh = gate_memory(CONSTANT * sizeof(float));
    for (int i = 0; i < arrays; i++) all[i] = gate_huge((size_t)elements * (1 + (size_t)varying) * sizeof(float));
    uint64_t chance = 1;
    int64_t step = 0;
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        if (constants) must(mpidata_put("mesh", mesh, MPIDATA_FLOAT32, 1, &constant));
        for (int64_t i = 0; i < steps; i++, step++) {
            while (step >= gate[GATE_LAST_STEP] && !gate[GATE_STOP]) {
                must(mpidata_wait()); /* sends packed samples and lets MPI move them */
                (void)usleep(PAUSE_US);
            }
            /* All ranks of a group leave at the same step, which all have reached. */
            if (gate[GATE_STOP] && step >= gate[GATE_LAST_STEP]) break;
            chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            const int64_t extent = varying ? elements / 2 + (int64_t)((chance >> 33) % (uint64_t)elements) : elements;
            float *u = all[step % arrays];
            if (lent) must(mpidata_wait_for(u));
            u[0] = u[extent - 1] = (float)step;
            if (lent)
                must(mpidata_iput("u", u, MPIDATA_FLOAT32, 1, &extent, &first));
            else if (varying)
                must(mpidata_put("u", u, MPIDATA_FLOAT32, 1, &extent));
            else
                must(mpidata_put_block("u", u, MPIDATA_FLOAT32, 1, &extent, &first));
            if (mpidata_step((double)step)) break;
        }
    }
    must(mpidata_finalize());
    for (int i = 0; i < arrays; i++) free(all[i]);
    free(mesh);
    return leave();
}
