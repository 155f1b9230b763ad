/* A trainer in C, to run the receive thread under the sanitizers: draws batches of 4 of pattern.c's samples, with and
 * without a copy, checks the field 'line', waits for the validation samples, reports, records every second step to
 * /dev/null, and closes. */
#include "trainer/draw.h"
#include "trainer/record.h"
#include "trainer/trainer.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 4, LINE = 37, PLANE = 13 * 70, CUBE = 5 * 4 * 900, WHOLE = 3 };

static void must(int status) {
    if (status == MPIDATA_SUCCESS) return;
    (void)fprintf(stderr, "%s: %s\n", mpidata_strerror(status), mpidata_last_error());
    _Exit(1);
}

static atomic_int over;
static int64_t recorded;

static void *record(void *unused) {
    enum { MOST = 8, FIELDS = 5 };
    double parameters[MOST], time[MOST];
    int64_t step[MOST], simulation[MOST], n;
    int file = open("/dev/null", O_WRONLY), ending = 0;
    for (;;) {
        ending = ending || over;
        int status = mpidata_trainer_record_take(MOST, 1 << 20, parameters, time, step, simulation, &n, 0.05);
        if (status == MPIDATA_ERR_AGAIN && ending) return unused;
        if (status == MPIDATA_ERR_AGAIN) continue;
        must(status);
        for (int field = 0; field < FIELDS; field++)
            if (mpidata_trainer_record_write(file, field, 0, n, 0)) _Exit(1);
        recorded += n;
        must(mpidata_trainer_record_release());
    }
}

static void check_line(const double *line, const int64_t *step, const int64_t *simulation) {
    for (int i = 0; i < BATCH; i++)
        for (int j = 0; j < LINE; j++)
            if (line[i * LINE + j] != 4096.0 * (double)simulation[i] + 64.0 * (double)step[i] + j) {
                (void)fprintf(stderr, "wrong value\n");
                _Exit(1);
            }
}

#define PADDED(type, elements) ((BATCH * (elements) * sizeof(type) + 63) / 64 * 64)

/* If the next batch has its own memory, checks, overwrites and releases it; returns whether it had. */
static int take_page(void) {
    const size_t line = PADDED(float, CUBE), fields = line + PADDED(double, LINE) + PADDED(float, PLANE) +
                                                      PADDED(double, 1) + PADDED(int64_t, WHOLE);
    const size_t step = fields + BATCH * 2 * sizeof(double), bytes = step + BATCH * 2 * sizeof(int64_t);
    void *memory;
    int64_t page;
    int status = mpidata_trainer_draw_page((int64_t)bytes, &memory, &page, 0.1);
    if (status == MPIDATA_ERR_AGAIN || status == MPIDATA_END || (!status && !memory)) return 0;
    must(status);
    const int64_t *steps = (const int64_t *)(const void *)((char *)memory + step);
    check_line((const double *)(const void *)((char *)memory + line), steps, steps + BATCH);
    memset(memory, 0xff, bytes);
    must(mpidata_trainer_give_back(page));
    return 1;
}

int main(int argc, char **argv) {
    int level;
    MPI_Fint trainers;
    int64_t count, step[BATCH], simulation[BATCH];
    double parameters[BATCH], time[BATCH];
    static double line[BATCH * LINE], scalar[BATCH];
    static float plane[BATCH * PLANE], cube[BATCH * CUBE];
    static int64_t whole[BATCH * WHOLE];
    void *const fields[5] = {cube, line, plane, scalar, whole}; /* the job file's order: sorted by name */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    pthread_t recorder;
    must(mpidata_trainer_record_start(2, 6, 1 << 20, 0));
    must(mpidata_trainer_open(MPI_Comm_c2f(MPI_COMM_WORLD), &trainers));
    if (pthread_create(&recorder, NULL, record, NULL)) return 1;
    must(mpidata_trainer_begin());
    must(mpidata_trainer_start(BATCH));
    int status, batches = 0, pages = 0;
    while ((status = mpidata_trainer_validation(&count, 0.1)) == MPIDATA_ERR_AGAIN) continue;
    must(status);
    for (;;) {
        pages += take_page();
        status = mpidata_trainer_draw(fields, parameters, time, step, simulation, 0.1);
        if (status == MPIDATA_ERR_AGAIN) continue;
        if (status == MPIDATA_END) break;
        must(status);
        check_line(line, step, simulation);
        must(mpidata_trainer_report("batches", ++batches));
    }
    over = 1;
    (void)pthread_join(recorder, NULL);
    mpidata_record_figures figures;
    must(mpidata_trainer_record_figures(&figures));
    must(mpidata_trainer_close(60.0));
    must(mpidata_trainer_free());
    (void)printf("batches %d, pages %d, validation %lld\n", batches, pages, (long long)count);
    (void)printf("recorded %lld of %lld\n", (long long)recorded, (long long)figures.queued);
    return MPI_Finalize();
}
