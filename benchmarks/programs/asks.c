/* A solver of one rank that asks an inference rank repeatedly. Argument: seconds. */
#include <mpi.h>
#include <mpidata.h>

#include "trips.h"

static int trip(const float *asked, float *answered) {
    static const int64_t shape[] = {1, TRIP_VALUES};
    const mpidata_array in[] = {{"x", (void *)asked, MPIDATA_FLOAT32, 2, shape}};
    const mpidata_array out[] = {{"y", answered, MPIDATA_FLOAT32, 2, shape}};
    const int status = mpidata_infer(in, 1, out, 1, NULL);
    if (status) (void)fprintf(stderr, "%s\n", mpidata_last_error());
    return status;
}

int main(int argc, char **argv) {
    MPI_Comm group;
    int64_t simulation;
    if (argc != 2) return 2;
    MPI_Init(&argc, &argv);
    if (mpidata_init(MPI_COMM_WORLD, &group)) return 1;
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        const float u = 1;
        trips_run(atof(argv[1]), trip);
        if (mpidata_put("u", &u, MPIDATA_FLOAT32, 0, NULL) || mpidata_step(0.0)) break;
    }
    if (mpidata_finalize()) return 1;
    return MPI_Finalize();
}
