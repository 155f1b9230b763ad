/* What MPI itself takes to start and end: after a barrier of all ranks, each counts itself in the gate and ends as soon
 * as the gate asks for it. Argument: folder. */
#include "gate.h"

#include <mpi.h>

int main(int argc, char **argv) {
    if (argc != 2 || MPI_Init(&argc, &argv) || MPI_Barrier(MPI_COMM_WORLD)) return 2;
    volatile int64_t *gate = gate_map(argv[1]);
    (void)__atomic_fetch_add(&gate[GATE_MADE], 1, __ATOMIC_SEQ_CST);
    while (!gate[GATE_STOP]) (void)usleep(20000);
    return MPI_Finalize();
}
