/* Makes the calls listed in calls.txt, with values from values-DTYPE, so that a step costs little more than its calls.
 * The first line has the numbers of tables, steps, and offsets at which the values of a step may begin; simulation s
 * follows table s mod tables. Each other line is a call: table, step, rank, field, how, dtype, start, elements. */
#ifdef CARRIED
#include <mpidata_carried.h>
#else
#include <mpidata.h>
#endif
#include <stdio.h>
#include <stdlib.h>

enum { PUT, BLOCK, IPUT, IPUT_BLOCK };
enum { DTYPES = 16 };

typedef struct {
    int table, step, field, how, dtype;
    int64_t at, elements;
} call;

static char *values[DTYPES];
static size_t size_of[DTYPES];
static call *calls;
static int n_calls, tables, steps;
static int64_t places;

static void must(int right) {
    if (right) return;
    (void)fprintf(stderr, "%s\n", mpidata_last_error());
    exit(1);
}

static void read_values(int dtype) {
    char path[32];
    long bytes;
    if (values[dtype]) return;
    (void)snprintf(path, sizeof path, "values-%d", dtype);
    FILE *file = fopen(path, "rb");
    must(file && !fseek(file, 0, SEEK_END) && (bytes = ftell(file)) > 0 && !fseek(file, 0, SEEK_SET));
    must((values[dtype] = malloc((size_t)bytes)) && fread(values[dtype], (size_t)bytes, 1, file) == 1);
    (void)fclose(file);
    size_of[dtype] = dtype == MPIDATA_UINT8 ? 1 : dtype == MPIDATA_FLOAT32 ? 4 : 8;
}

static void read_calls(int rank) {
    FILE *file = fopen("calls.txt", "r");
    int of_rank, room = 0;
    call one;
    long long at, elements, n;
    must(file && fscanf(file, "%d %d %lld", &tables, &steps, &n) == 3);
    places = n;
    while (fscanf(file, "%d %d %d %d %d %d %lld %lld", &one.table, &one.step, &of_rank, &one.field, &one.how, &one.dtype, &at,
                  &elements) == 8) {
        if (of_rank != rank) continue;
        if (n_calls == room) must((calls = realloc(calls, (size_t)(room = 2 * room + 64) * sizeof *calls)) != NULL);
        one.at = at;
        one.elements = elements;
        calls[n_calls++] = one;
        read_values(one.dtype);
    }
    (void)fclose(file);
}

static void make(const call *one, int64_t simulation) {
    char name[16];
    (void)snprintf(name, sizeof name, "f%d", one->field);
    const int64_t place = (simulation * 7919 + one->step * 613 + one->field * 131) % places + one->at;
    const char *from = values[one->dtype] + (size_t)place * size_of[one->dtype];
    const mpidata_dtype dtype = (mpidata_dtype)one->dtype;
    switch (one->how) {
    case PUT: must(!mpidata_put(name, from, dtype, 1, &one->elements)); break;
    case BLOCK: must(!mpidata_put_block(name, from, dtype, 1, &one->elements, &one->at)); break;
    default: must(!mpidata_iput(name, from, dtype, 1, &one->elements, one->how == IPUT ? NULL : &one->at));
    }
}

int main(int argc, char **argv) {
    int64_t simulation;
    int rank = 0;
    (void)argc, (void)argv;
#ifdef CARRIED
    must(!mpidata_attach());
#else
    MPI_Comm group;
    (void)MPI_Init(&argc, &argv);
    must(!mpidata_init(MPI_COMM_WORLD, &group));
    (void)MPI_Comm_rank(group, &rank);
#endif
    read_calls(rank);
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        int next = 0;
        while (next < n_calls && calls[next].table < simulation % tables) next++;
        for (int step = 0; step < steps; step++) {
            for (; next < n_calls && calls[next].table == simulation % tables && calls[next].step == step; next++)
                make(&calls[next], simulation);
            must(!mpidata_step(0.25 * step));
        }
    }
    must(!mpidata_finalize()); /* waits for lent arrays */
#ifndef CARRIED
    (void)MPI_Finalize();
#endif
    return 0;
}
