/* A solver of one rank that computes nothing and sends samples of several fields as fast as it can until the gate stops
 * it. Writes its CPU time while the gate was open. Arguments: folder, elements (float32) of a field, fields. */
#include "gate.h"

#include <mpidata.h>
#include <sys/resource.h>

static void must(int status) {
    if (status == MPIDATA_SUCCESS || status == MPIDATA_END) return;
    (void)fprintf(stderr, "%s: %s\n", mpidata_strerror(status), mpidata_last_error());
    exit(1);
}

static double cpu(void) {
    struct rusage used;
    (void)getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

int main(int argc, char **argv) {
    int64_t simulation = 0;
    MPI_Comm group;
    if (argc != 4) return 2;
    MPI_Init(&argc, &argv);
    must(mpidata_init(MPI_COMM_WORLD, &group));
    volatile int64_t *gate = gate_map(argv[1]);
    int64_t elements = atol(argv[2]);
    int fields = atoi(argv[3]);
    float *u = gate_memory((size_t)elements * sizeof *u);
    double from = -1, used = 0;
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        char path[4096];
        for (int64_t step = 0; !gate[GATE_STOP]; step++) {
            if (from < 0 && gate[GATE_GO]) from = cpu();
            for (int i = 0; i < fields; i++) {
                char name[16];
                (void)snprintf(name, sizeof name, "u%d", i);
                must(mpidata_put(name, u, MPIDATA_FLOAT32, 1, &elements));
            }
            if (mpidata_step((double)step)) break;
        }
        if (from >= 0) used = cpu() - from;
        (void)snprintf(path, sizeof path, "%s/solver-%lld.json", argv[1], (long long)simulation);
        FILE *file = fopen(path, "w");
        if (!file || fprintf(file, "{\"cpu_s\": %.6f}\n", used) < 0 || fclose(file)) return 1;
    }
    must(mpidata_finalize());
    free(u);
    return MPI_Finalize();
}
