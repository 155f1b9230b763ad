/* A solver whose rank 0 puts whole fields while the others wait for it in the solver's own barrier. Its output stays
 * in its stdio buffer until it ends. */
#include <mpi.h>
#include <mpidata.h>
#include <stdio.h>

static void check(int status) {
    if (!status) return;
    (void)fprintf(stderr, "%s\n", mpidata_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
    MPI_Comm group;
    int rank;
    int64_t simulation;
    static float u[160][160];
    MPI_Init(&argc, &argv);
    check(mpidata_init(MPI_COMM_WORLD, &group));
    MPI_Comm_rank(group, &rank);
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS)
        for (int step = 0; step < 40; step++) {
            if (rank == 0) check(mpidata_put("u", u, MPIDATA_FLOAT32, 2, (int64_t[]){160, 160}));
            MPI_Barrier(group);
            check(mpidata_step(step));
        }
    check(mpidata_finalize());
    printf("all done\n");
    MPI_Finalize();
    return 0;
}
