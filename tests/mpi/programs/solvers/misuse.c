/* A solver that makes one mistake, named by its argument, at step 2 of its first simulation, and continues as if
 * nothing had happened: the library alone must end the job. */
#include <mpidata.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static const char *mistake;
static int is(const char *name) { return strcmp(mistake, name) == 0; }

static void put_blocks(int rank, int size, const float *u) {
    int64_t rows = 4 / size, shape[2] = {rows, 6}, start[2] = {rank * rows, 0};
    if (is("overlap") && rank == 1) {
        shape[0] = 1; /* the right total of elements: rows 1 and 3, row 2 is a hole */
        (void)mpidata_put_block("u", u, MPIDATA_FLOAT32, 2, shape, (int64_t[]){1, 0});
        start[0] = 3;
    }
    if (is("hole") && rank == 1) shape[0]--;
    if (is("outside") && rank == 1) start[0]++;
    (void)mpidata_put_block("u", u, MPIDATA_FLOAT32, 2, shape, start);
}

static void put(int rank, int size, const float *u) {
    const int64_t shape[2] = {4, 6}, turned[2] = {6, 4};
    double value = 0.0;
    if (is("parameter")) (void)mpidata_param("alhpa", &value);
    if (is("undeclared")) (void)mpidata_put("temprature", u, MPIDATA_FLOAT32, 2, shape);
    if (is("not-put")) return;
    if (is("shape"))
        (void)mpidata_put("u", u, MPIDATA_FLOAT32, 2, turned);
    else if (is("dtype"))
        (void)mpidata_put("u", u, MPIDATA_INT32, 2, shape);
    else if (is("twice") && rank == 0) {
        (void)mpidata_put("u", u, MPIDATA_FLOAT32, 2, shape);
        (void)mpidata_put("u", u, MPIDATA_FLOAT32, 2, shape);
    } else
        put_blocks(rank, size, u);
}

int main(int argc, char **argv) {
    static const float u[24];
    int rank, size;
    int64_t simulation;
    MPI_Comm group;
    mistake = argc > 1 ? argv[1] : "none";
    MPI_Init(&argc, &argv);
    if (is("before-init")) (void)mpidata_put("u", u, MPIDATA_FLOAT32, 2, (int64_t[]){4, 6});
    if (mpidata_init(MPI_COMM_WORLD, &group) && !is("before-init")) return 1;
    MPI_Comm_rank(group, &rank);
    MPI_Comm_size(group, &size);
    const int diverges = is("time") || (is("time-of-one") && rank == 1), some = is("time-of-one") || is("time");
    const int steps = strstr(mistake, "-finalize") ? 3 : some ? 9 : 400;
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS)
        for (int step = 0; step < steps + (is("last-step-of-one") && rank == 1); step++) {
            if (is("fail-of-one") && rank == 1 && step == 2) (void)mpidata_fail("diverged");
            if (is("end-of-one") || is("fail-of-one"))
                if (rank == 1 && step == 2) break;
            if (step == 2 && !some && !strstr(mistake, "-of-one"))
                put(rank, size, u);
            else
                for (int part = 0; part < 1; part++) {
                    int64_t rows = 4 / size;
                    (void)mpidata_put_block("u", u, MPIDATA_FLOAT32, 2, (int64_t[]){rows, 6}, (int64_t[]){rank * rows, 0});
                }
            if (is("next-without-step") && step == 2) break;
            (void)mpidata_step(diverges && simulation == 0 && step == 2 ? (double)NAN : 0.1 * step);
            if (!is("last-step-of-one")) (void)usleep(some ? 200 : 20000);
        }
    if (!strstr(mistake, "-finalize")) (void)mpidata_finalize();
    (void)MPI_Finalize();
    return is("late-finalize") && mpidata_finalize() != MPIDATA_ERR_ORDER;
}
