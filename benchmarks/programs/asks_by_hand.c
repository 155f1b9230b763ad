/* asks.c in hand-written MPI: sends to asks_by_hand.py, rank 1; yields until the answer arrives. Argument: seconds. */
#include <mpi.h>
#include <sched.h>

#include "trips.h"

static int trip(const float *asked, float *answered) {
    int here = 0;
    MPI_Send(asked, TRIP_VALUES, MPI_FLOAT, 1, 0, MPI_COMM_WORLD);
    for (;;) {
        MPI_Iprobe(1, 0, MPI_COMM_WORLD, &here, MPI_STATUS_IGNORE);
        if (here) break;
        (void)sched_yield();
    }
    return MPI_Recv(answered, TRIP_VALUES, MPI_FLOAT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    MPI_Init(&argc, &argv);
    trips_run(atof(argv[1]), trip);
    MPI_Send(NULL, 0, MPI_FLOAT, 1, 1, MPI_COMM_WORLD); /* asks rank 1 to end */
    return MPI_Finalize();
}
