/* A carried program that makes a mistake. Argument: "whole": each rank puts the whole field, as if it were alone;
 * "lingers": does not end after its ranks have finalized; "closes": closes file descriptors that are not its own;
 * "few": has as many files open as the limit allows; "diverges": a time in the first simulation is not finite. */
#ifdef CARRIED
#include <mpidata_carried.h>
#else
#include <mpidata.h>
#endif
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int refused(void) {
    (void)fprintf(stderr, "mistaken: %s\n", mpidata_last_error());
    return 3;
}

static int enter(int argc, char **argv) {
#ifdef CARRIED
    (void)argc, (void)argv;
    return mpidata_attach();
#else
    MPI_Comm group;
    (void)MPI_Init(&argc, &argv);
    return mpidata_init(MPI_COMM_WORLD, &group);
#endif
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    const float u[24] = {0};
    const int diverges = !strcmp(how, "diverges");
    int64_t simulation;
    if (!strcmp(how, "few") && setrlimit(RLIMIT_NOFILE, &(struct rlimit){4, 4})) return 2;
    if (enter(argc, argv)) return refused();
    for (int file = 3; file < 64 && !strcmp(how, "closes"); file++) (void)close(file);
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS)
        for (int step = 0; step < 5; step++)
            if (mpidata_put("u", u, MPIDATA_FLOAT32, 2, (int64_t[]){4, 6}) || mpidata_step(diverges && !simulation && step == 2 ? (double)NAN : step))
                return refused();
    if (mpidata_finalize()) return refused();
    if (!strcmp(how, "lingers")) (void)sleep(100);
    return 0;
}
