/* A solver whose first try of simulation 0 dies at step 5: its last rank, the only one that puts, sends itself SIGKILL
 * once the other group is at work. That group continues until the second try has started, so that only the replacement
 * can get it. Writes the times into files. Argument: folder. */
#include <mpidata.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { DIES_AT = 5, STEPS = 20, MOST_STEPS = 60000 };

static void must(int status) {
    if (status == MPIDATA_SUCCESS || status == MPIDATA_END) return;
    (void)fprintf(stderr, "%s: %s\n", mpidata_strerror(status), mpidata_last_error());
    exit(1);
}

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv) {
    double began = now(), joined, given;
    int rank, size, wrote = 0;
    int64_t simulation;
    char died[4096], again[4096], busy[4096];
    MPI_Comm group;
    if (argc != 2) return 2;
    (void)snprintf(died, sizeof died, "%s/died", argv[1]);
    (void)snprintf(busy, sizeof busy, "%s/busy", argv[1]);
    (void)snprintf(again, sizeof again, "%s/again", argv[1]);
    MPI_Init(&argc, &argv);
    must(mpidata_init(MPI_COMM_WORLD, &group));
    joined = now();
    MPI_Comm_rank(group, &rank);
    MPI_Comm_size(group, &size);
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        given = now();
        int second = simulation == 0 && access(died, F_OK) == 0;
        for (int64_t step = 0; step < MOST_STEPS; step++) {
            /* Both ranks of a group leave at the same step: one checks the file and sends the result to the other. */
            int over = rank == 0 && (simulation == 0 ? step >= STEPS : step >= STEPS && access(again, F_OK) == 0);
            if (size > 1) MPI_Bcast(&over, 1, MPI_INT, 0, group);
            if (over) break;
            float u = (float)step;
            if (rank == size - 1) must(mpidata_put("u", &u, MPIDATA_FLOAT32, 0, NULL));
            (void)usleep(1000);
            if (simulation == 0 && !second && step == DIES_AT && rank == size - 1) {
                for (int i = 0; access(busy, F_OK) != 0 && i < 60000; i++) (void)usleep(1000);
                FILE *file = fopen(died, "w");
                if (file) (void)fprintf(file, "%.6f\n", now());
                if (file) (void)fclose(file);
                (void)kill(getpid(), SIGKILL);
            }
            if (mpidata_step((double)step)) break;
            if (simulation != 0 && !wrote && rank == 0) {
                FILE *file = fopen(busy, "w");
                if (file) (void)fclose(file);
                wrote = 1;
            }
            if (second && !wrote && rank == 0) {
                FILE *file = fopen(again, "w");
                if (file) (void)fprintf(file, "%.6f %.6f %.6f\n", began, joined, given);
                if (file) (void)fclose(file);
                wrote = 1;
            }
        }
    }
    must(mpidata_finalize());
    return MPI_Finalize();
}
