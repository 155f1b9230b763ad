/* Puts the interior of an array with ghost cells, a column of structs in reverse order, and a part with a stride. */
#include <mpidata.h>
#include <stddef.h>
#include <stdlib.h>

typedef struct {
    double x;
    int32_t id;
} particle;

static void must(int status) {
    if (status != MPIDATA_SUCCESS) exit(1);
}

int main(int argc, char **argv) {
    static double u[6][8];
    static particle particles[5];
    MPI_Comm group;
    int64_t simulation;
    (void)MPI_Init(&argc, &argv);
    must(mpidata_init(MPI_COMM_WORLD, &group));
    for (int j = 0; j < 6; j++)
        for (int i = 0; i < 8; i++) u[j][i] = j < 1 || j > 4 || i < 1 || i > 6 ? -1 : 10 * j + i;
    for (int i = 0; i < 5; i++) particles[i] = (particle){0.5 * i, i};
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        for (int half = 0; half < 2; half++)
            must(mpidata_put_strided("u", &u[1 + 2 * half][1], MPIDATA_FLOAT64, 2, (int64_t[]){2, 6}, (int64_t[]){2 * half, 0},
                                     (int64_t[]){sizeof u[0], sizeof u[0][0]}));
        must(mpidata_put_strided("id", &particles[4].id, MPIDATA_INT32, 1, (int64_t[]){5}, NULL,
                                 (int64_t[]){-(int64_t)sizeof(particle)}));
        must(mpidata_put_strided("x", &particles[0].x, MPIDATA_FLOAT64, 1, (int64_t[]){3}, NULL, (int64_t[]){2 * sizeof(particle)}));
        must(mpidata_step(1));
    }
    must(mpidata_finalize());
    return MPI_Finalize();
}
