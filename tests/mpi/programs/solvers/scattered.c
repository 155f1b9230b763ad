/* Puts rows of "u" (9 x 2) and of "v" (a varying number) by maps, and "ends" with local numbers. Argument: "maps",
 * "new" (a new map in each step), or a mistake. */
#ifdef CARRIED
#include <mpi.h>
#include <mpidata_carried.h>
#else
#include <mpidata.h>
#endif
#include <stdlib.h>
#include <string.h>

static void must(int status) {
    if (status != MPIDATA_SUCCESS) exit(1);
}

static int rank, ranks;

/* Returns this rank's rows of n (row * row mod ranks == rank), the last first. */
static int64_t rows_of(int64_t n, int64_t *indices) {
    int64_t count = 0;
    for (int64_t row = n - 1; row >= 0; row--)
        if (row * row % ranks == rank) indices[count++] = row;
    return count;
}

int main(int argc, char **argv) {
    MPI_Comm group = MPI_COMM_WORLD;
    int64_t simulation, indices[64];
    double u[64][2];
    float v[64];
    int32_t ends[64];
    mpidata_map *of_u = NULL, *of_v = NULL, *with_ghosts = NULL;
    (void)MPI_Init(&argc, &argv);
#ifdef CARRIED
    must(mpidata_attach());
#else
    must(mpidata_init(MPI_COMM_WORLD, &group));
#endif
    (void)MPI_Comm_rank(group, &rank);
    (void)MPI_Comm_size(group, &ranks);
    const int makes_new = argc > 1 && !strcmp(argv[1], "new");
    for (int64_t i = 0; i < 20; i++) indices[i] = (i + rank) % 20;
    must(mpidata_map_create(20, indices, &with_ghosts));
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        for (int step = 0; step < 6; step++) {
            int64_t n = rows_of(9, indices);
            if (makes_new) must(mpidata_map_free(&of_u));
            if (!of_u) must(mpidata_map_create(n, indices, &of_u));
            for (int64_t i = 0; i < n; i++)
                for (int c = 0; c < 2; c++) u[i][c] = (double)(1000 * simulation + 100 * step + 2 * indices[i] + c);
            must(mpidata_put_mapped("u", u, MPIDATA_FLOAT64, 2, (int64_t[]){n, 2}, of_u));
            n = rows_of(10 + step, indices);
            must(mpidata_map_free(&of_v));
            must(mpidata_map_create(n, indices, &of_v));
            for (int64_t i = 0; i < n; i++) v[i] = (float)(100 * step + indices[i]);
            must(mpidata_put_mapped("v", v, MPIDATA_FLOAT32, 1, (int64_t[]){n}, of_v));
            for (int32_t i = 0; i < 5; i++) ends[i] = i + 1;
            must(mpidata_put_indices("ends", ends, MPIDATA_INT32, 1, (int64_t[]){5}, with_ghosts));
            for (int32_t i = 0; i < 3; i++) ends[i] = i + 1;
            must(mpidata_put("w", u, MPIDATA_FLOAT64, 1, (int64_t[]){3}));
            must(mpidata_put_indices("own", ends, MPIDATA_INT32, 1, (int64_t[]){3}, NULL));
            if (mpidata_step(step)) break;
        }
    }
    must(mpidata_map_free(&of_u));
    must(mpidata_finalize());
    must(mpidata_map_free(&of_v));
    must(mpidata_map_free(&with_ghosts));
    return MPI_Finalize();
}
