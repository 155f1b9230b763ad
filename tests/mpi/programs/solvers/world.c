/* A solver that waits for all ranks of MPI_COMM_WORLD as if they belonged to it. Argument: "before" mpidata_init,
 * "after" it, or at the "end", before mpidata_finalize. */
#include <mpidata.h>
#include <string.h>

static const char *when = "";

static void wait_for_the_world(const char *now) {
    if (!strcmp(now, when)) (void)MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    static const double values[24];
    int64_t simulation;
    MPI_Comm group;
    if (argc > 1) when = argv[1];
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
    wait_for_the_world("before");
    if (mpidata_init(MPI_COMM_WORLD, &group) != MPIDATA_SUCCESS) return 1;
    wait_for_the_world("after");
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS)
        for (int step = 0; step < 3; step++)
            if (mpidata_put("u", values, MPIDATA_FLOAT64, 2, (int64_t[]){4, 6}) || mpidata_step(step)) return 1;
    wait_for_the_world("end");
    if (mpidata_finalize() != MPIDATA_SUCCESS) return 1;
    return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
