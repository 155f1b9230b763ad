/* A solver of one rank with simulations of one step, which computes nothing. Writes how often it requested the next
 * simulation while the gate was open, and how long it waited for all answers. Argument: folder. */
#include "gate.h"

#include <mpidata.h>

static void must(int status) {
    if (status == MPIDATA_SUCCESS || status == MPIDATA_END) return;
    (void)fprintf(stderr, "%s: %s\n", mpidata_strerror(status), mpidata_last_error());
    exit(1);
}

static void write_result(const char *folder, int64_t asked, double waited) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/solver-%d.json", folder, (int)getpid());
    FILE *file = fopen(path, "w");
    if (!file || fprintf(file, "{\"asked\": %lld, \"waited_s\": %.9f}\n", (long long)asked, waited) < 0 || fclose(file)) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv) {
    MPI_Comm group;
    if (argc != 2) return 2;
    MPI_Init(&argc, &argv);
    must(mpidata_init(MPI_COMM_WORLD, &group));
    volatile int64_t *gate = gate_map(argv[1]);
    int64_t simulation, asked = 0, all = 0;
    double waited = 0, asking = gate_now();
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        float u = (float)simulation;
        if (gate[GATE_GO] && !gate[GATE_STOP]) {
            waited += gate_now() - asking;
            asked++;
        }
        if (all++ == 0) (void)__atomic_fetch_add(&gate[GATE_MADE], 1, __ATOMIC_SEQ_CST);
        must(mpidata_put("u", &u, MPIDATA_FLOAT32, 0, NULL));
        must(mpidata_step(0.0));
        asking = gate_now();
    }
    write_result(argv[1], asked, waited);
    must(mpidata_finalize());
    return MPI_Finalize();
}
