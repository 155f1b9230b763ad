/* The solver of turns.py: computes nothing, and sends a number of samples each time it is its turn.
 * Arguments: folder, elements (float32) of a sample, and `varying` for samples of 0.5 to 1.5 times as many, `lent` for arrays
 * that are lent, 8 in turn, `simulations` for such ones of 100 steps, or `constants` if these put 1 MB before. With CARRIED it is no rank of the job. */
#include "gate.h"

#include <string.h>

#ifdef CARRIED
#include <mpidata_carried.h>
#else
#include <mpidata.h>
#endif

enum { GATE_LAST_STEP = 5, PAUSE_US = 500, STEPS = 100, CONSTANT = 1 << 18, LENT = 8 };

static void must(int status) {
    if (status == MPIDATA_SUCCESS || status == MPIDATA_END) return;
    (void)fprintf(stderr, "%s: %s\n", mpidata_strerror(status), mpidata_last_error());
    exit(1);
}

#ifdef CARRIED
static void enter(int argc, char **argv) {
    (void)argc, (void)argv;
    must(mpidata_attach());
}

static int leave(void) { return 0; }
#else
static void enter(int argc, char **argv) {
    MPI_Comm group;
    (void)MPI_Init(&argc, &argv);
    must(mpidata_init(MPI_COMM_WORLD, &group));
}

static int leave(void) { return MPI_Finalize(); }
#endif

int main(int argc, char **argv) {
    int64_t simulation;
    if (argc < 3) return 2;
    const int varying = argc > 3 && !strcmp(argv[3], "varying"), constants = argc > 3 && !strcmp(argv[3], "constants");
    const int lent = argc > 3 && !strcmp(argv[3], "lent"), arrays = lent ? LENT : 1;
    const int64_t steps = argc > 3 && !varying && !lent ? STEPS : INT64_MAX, constant = CONSTANT;
    enter(argc, argv);
    volatile int64_t *gate = gate_map(argv[1]);
    int64_t elements = atol(argv[2]), first = 0;
    float *all[LENT], *mesh = gate_memory(CONSTANT * sizeof(float));
    for (int i = 0; i < arrays; i++) all[i] = gate_memory((size_t)elements * (1 + (size_t)varying) * sizeof(float));
    uint64_t chance = 1;
    int64_t step = 0;
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        if (constants) must(mpidata_put("mesh", mesh, MPIDATA_FLOAT32, 1, &constant));
        for (int64_t i = 0; i < steps; i++, step++) {
            while (step == gate[GATE_LAST_STEP] && !gate[GATE_STOP]) {
                must(mpidata_wait()); /* sends what was packed, and lets MPI move it */
                (void)usleep(PAUSE_US);
            }
            if (gate[GATE_STOP]) break;
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
