/* A solver that ends its first try of simulation 0 by MPI_Abort with 4, and its first try of simulation 1 by an error
 * that is fatal within MPI. Argument: "early": MPI_Abort before mpidata_init. */
#include <fcntl.h>
#include <mpidata.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int first_try(int64_t simulation) {
    char name[64];
    (void)snprintf(name, sizeof name, "tried-%d", (int)simulation);
    int file = open(name, O_WRONLY | O_CREAT | O_EXCL, 0666);
    return file >= 0 && close(file) == 0;
}

int main(int argc, char **argv) {
    MPI_Comm group;
    int rank, size;
    int64_t simulation;
    double values[24] = {0};
    const int64_t whole[2] = {4, 6}, origin[2] = {0, 0};
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
    if (argc > 1) MPI_Abort(MPI_COMM_WORLD, 6);
    if (mpidata_init(MPI_COMM_WORLD, &group) != MPIDATA_SUCCESS) return 1;
    if (MPI_Comm_rank(group, &rank) != MPI_SUCCESS || MPI_Comm_size(group, &size) != MPI_SUCCESS) return 1;
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        for (int step = 0; step < 5; step++) {
            if (rank == 0 && mpidata_put_block("u", values, MPIDATA_FLOAT64, 2, whole, origin)) return 1;
            if (mpidata_step(step)) break;
            if (step == 2 && rank == size - 1 && simulation < 2 && first_try(simulation)) {
                printf("simulation %d diverged\n", (int)simulation);
                if (simulation == 0) MPI_Abort(group, 4);
                (void)MPI_Send(values, 1, MPI_DOUBLE, 1000, 0, MPI_COMM_WORLD);
            }
        }
    }
    if (mpidata_finalize() != MPIDATA_SUCCESS) return 1;
    return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
