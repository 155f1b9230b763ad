/* Solver with 20 steps per simulation. "no_finalize": ends without MPI_Finalize. "fork": forks a child in its first
 * simulation, which continues as if it were the solver. */
#include <mpi.h>
#include <mpidata.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    MPI_Comm group;
    int64_t simulation, shape[2] = {4, 6};
    double u[24] = {0};
    int forked = 0;
    MPI_Init(&argc, &argv);
    if (mpidata_init(MPI_COMM_WORLD, &group)) return 1;
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        for (int step = 0; step < 20; step++) {
            if (!strcmp(argv[1], "fork") && step == 5 && !forked++ && fork() < 0) return 1;
            (void)mpidata_put("u", u, MPIDATA_FLOAT64, 2, shape);
            (void)mpidata_step(step);
        }
    }
    (void)mpidata_finalize();
    if (strcmp(argv[1], "no_finalize")) MPI_Finalize();
    return 0;
}
