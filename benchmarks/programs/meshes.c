/* A solver that sends meshes of different sizes as fast as it can; the first and last value of u are the step number.
 * Arguments: folder, largest number of nodes, samples before the clock starts, packed | padded */
#include "gate.h"

#include <inttypes.h>
#include <mpidata.h>
#include <string.h>

static void must(int status) {
    if (status == MPIDATA_SUCCESS || status == MPIDATA_END) return;
    (void)fprintf(stderr, "%s: %s\n", mpidata_strerror(status), mpidata_last_error());
    exit(1);
}

/* Read the node counts per step that mesh_sizes.py wrote; they repeat after *count steps. */
static int64_t *read_nodes(const char *folder, int64_t *count) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/nodes", folder);
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%" SCNd64, count) != 1) exit(1);
    int64_t *nodes = calloc((size_t)*count, sizeof *nodes);
    for (int64_t i = 0; i < *count; i++)
        if (!nodes || fscanf(file, "%" SCNd64, &nodes[i]) != 1) exit(1);
    (void)fclose(file);
    return nodes;
}

int main(int argc, char **argv) {
    int64_t simulation, count;
    MPI_Comm group;
    if (argc != 5) return 2;
    MPI_Init(&argc, &argv);
    must(mpidata_init(MPI_COMM_WORLD, &group));
    volatile int64_t *gate = gate_map(argv[1]);
    const int64_t most = atol(argv[2]), warm = atol(argv[3]);
    int64_t *sizes = read_nodes(argv[1], &count);
    const int padded = !strcmp(argv[4], "padded");
    float *xy = gate_memory((size_t)most * 2 * sizeof *xy), *u = gate_memory((size_t)most * sizeof *u);
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS)
        for (int64_t step = 0; !gate[GATE_STOP]; step++) {
            while (step == warm && !gate[GATE_GO] && !gate[GATE_STOP]) {
                must(mpidata_wait());
                (void)usleep(200);
            }
            const int64_t nodes = sizes[step % count], extent = padded ? most : nodes;
            u[0] = u[nodes - 1] = (float)step;
            must(mpidata_put("xy", xy, MPIDATA_FLOAT32, 2, (int64_t[]){extent, 2}));
            must(mpidata_put("u", u, MPIDATA_FLOAT32, 1, &extent));
            if (padded) must(mpidata_put("count", &nodes, MPIDATA_INT64, 0, NULL));
            if (mpidata_step((double)step)) break;
        }
    must(mpidata_finalize());
    free(xy);
    free(u);
    free(sizes);
    return MPI_Finalize();
}
