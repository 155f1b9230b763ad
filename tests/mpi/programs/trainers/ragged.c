/* A trainer in C, like trainer.c, for a mesh that is put once per simulation: "cells" (cell x 3), indices into "xy"
 * (nodes x 2), and "u" (nodes) in each step. Draws batches of 4, with and without the mesh, packed and padded, and
 * holds the mesh of each batch until the next; checks lengths and indices; records to /dev/null. Argument: a trainer
 * that draws nothing, and leaves with the others. */
#include "trainer/constants/held.h"
#include "trainer/draw.h"
#include "trainer/record.h"
#include "trainer/trainer.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 4, CELL = 0, NODES = 1, NUMBERS = 2, MOST = 64 };
enum { CELLS, U, XY, FIELDS }; /* the job file's order: sorted by name */

static void must_hold(int right, const char *what) {
    if (right) return;
    (void)fprintf(stderr, "%s: %s\n", what, mpidata_last_error());
    _Exit(1);
}

static void must(int status) { must_hold(status == MPIDATA_SUCCESS, "failed"); }

static atomic_int over;

/* Checks the mesh of a sample: both fields, and the number of nodes. */
static void check_mesh(const mpidata_try_constants *mesh, int64_t simulation, int64_t nodes, int64_t cells) {
    void *values[FIELDS];
    int64_t numbers[NUMBERS], of, by_try;
    must(mpidata_trainer_constants_look(mesh, values, numbers, &of, &by_try));
    must_hold(of == simulation && numbers[NODES] == nodes && numbers[CELL] == cells && values[XY], "another mesh");
    for (int64_t i = 0; i < 3 * cells; i++)
        must_hold(((int64_t *)values[CELLS])[i] >= 0 && ((int64_t *)values[CELLS])[i] < nodes, "a cell beyond the nodes");
}

static void *record(void *unused) {
    double parameters[8], time[8];
    int64_t step[8], simulation[8], numbers[8][NUMBERS], n;
    const mpidata_try_constants *meshes[8];
    int file = open("/dev/null", O_WRONLY), ending = 0;
    for (;;) {
        ending = ending || over;
        int status = mpidata_trainer_record_take(8, 1 << 20, parameters, time, step, simulation, &n, 0.05);
        if (status == MPIDATA_ERR_AGAIN && ending) return unused;
        if (status == MPIDATA_ERR_AGAIN) continue;
        must(status);
        must(mpidata_trainer_record_numbers(numbers[0]));
        must(mpidata_trainer_record_constants(meshes));
        for (int64_t i = 0; i < n; i++) check_mesh(meshes[i], simulation[i], numbers[i][NODES], numbers[i][CELL]);
        must_hold(!mpidata_trainer_record_write(file, U, 0, n, 0), "not written");
        must(mpidata_trainer_record_release());
    }
}

static mpidata_try_constants *held[BATCH];
static int64_t n_held;

static void let_go(void) {
    while (n_held) must(mpidata_trainer_constants_release(held[--n_held]));
}

static void hold_meshes(const int64_t *simulation, int64_t numbers[NUMBERS][BATCH]) {
    let_go();
    must(mpidata_trainer_constants_drawn(held, &n_held));
    for (int64_t i = 0; i < BATCH; i++) {
        mpidata_try_constants *found;
        must(mpidata_trainer_constants_find(simulation[i], &found));
        check_mesh(found, simulation[i], numbers[NODES][i], numbers[CELL][i]);
        must(mpidata_trainer_constants_release(found));
    }
}

/* Draws the batch with these lengths; every second batch with the mesh, every third one padded. */
static void draw(int64_t numbers[NUMBERS][BATCH], int batch) {
    static int64_t cells[BATCH * MOST * 3], step[BATCH], simulation[BATCH];
    static double u[BATCH * MOST], parameters[BATCH], time[BATCH];
    static float xy[BATCH * MOST * 2];
    const int64_t none = -1;
    const void *fill[FIELDS] = {&none, &none, &none};
    void *const fields[FIELDS] = {batch % 2 ? cells : NULL, u, batch % 2 ? xy : NULL};
    const int padded = batch % 3 == 0;
    int status;
    do
        status = mpidata_trainer_draw_ragged(!padded, padded ? fill : NULL, fields, parameters, time, step, simulation, 0.1);
    while (status == MPIDATA_ERR_AGAIN);
    must(status);
    int64_t first = 0, at = 0;
    for (int i = 0; i < BATCH && !padded && batch % 2; at += numbers[CELL][i], first += numbers[NODES][i++])
        for (int64_t j = 3 * at; j < 3 * (at + numbers[CELL][i]); j++)
            must_hold(cells[j] >= first && cells[j] < first + numbers[NODES][i], "a cell of another sample's nodes");
    hold_meshes(simulation, numbers);
}

static void leave_together(MPI_Comm trainers) {
    MPI_Request request;
    MPI_Ibarrier(trainers, &request);
    for (int done = 0; !done; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) usleep(1000);
}

int main(int argc, char **argv) {
    int level, status, batches = 0, trainer;
    MPI_Fint trainers;
    pthread_t recorder;
    int64_t numbers[NUMBERS][BATCH];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    must(mpidata_trainer_record_start(1, 6, 1 << 20, 0));
    must(mpidata_trainer_open(MPI_Comm_c2f(MPI_COMM_WORLD), &trainers));
    if (pthread_create(&recorder, NULL, record, NULL)) return 1;
    must(mpidata_trainer_begin());
    must(mpidata_trainer_start(BATCH));
    MPI_Comm_rank(MPI_Comm_f2c(trainers), &trainer);
    const int idle = argc > 1 && atoi(argv[1]) == trainer;
    while (!idle && (status = mpidata_trainer_draw_numbers(numbers[0], 0.1)) != MPIDATA_END) {
        if (status == MPIDATA_ERR_AGAIN) continue;
        must(status);
        draw(numbers, batches++);
    }
    leave_together(MPI_Comm_f2c(trainers));
    over = 1;
    (void)pthread_join(recorder, NULL);
    let_go();
    must(mpidata_trainer_close(60.0));
    must(mpidata_trainer_free());
    (void)printf("batches %d\n", batches);
    return MPI_Finalize();
}
