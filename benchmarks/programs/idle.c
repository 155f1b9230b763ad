/* A solver whose first step of a simulation lasts until the gate stops it. Argument: folder. */
#include "gate.h"

#include <mpidata.h>

int main(int argc, char **argv) {
    MPI_Comm group;
    int64_t simulation;
    if (argc != 2 || MPI_Init(&argc, &argv) || mpidata_init(MPI_COMM_WORLD, &group)) return 2;
    volatile int64_t *gate = gate_map(argv[1]);
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        (void)__atomic_fetch_add(&gate[GATE_MADE], 1, __ATOMIC_SEQ_CST);
        while (!gate[GATE_STOP]) (void)usleep(20000);
        float u = (float)simulation;
        if (mpidata_put("u", &u, MPIDATA_FLOAT32, 0, NULL) || mpidata_step(0.0)) return 1;
    }
    return mpidata_finalize() || MPI_Finalize();
}
