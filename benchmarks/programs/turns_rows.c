/* A solver of four ranks for turns.py: each puts a quarter of the rows of a field each time it is its turn.
 * Arguments: folder, elements (float32) of a sample, how, bytes of a row. How: `blocks`, contiguous quarters;
 * `numbered`, maps whose rows are numbered rank by rank; `dealt` or `random`, maps whose rows are dealt out by chance,
 * ascending in each rank or in random order; `strided`, quarters from memory in which every other row is skipped. */
#include "gate.h"

#include <mpidata.h>
#include <string.h>

enum { PAUSE_US = 500 };

typedef struct {
    int64_t n, first, columns;
    float *values;
    mpidata_map *map;
} quarter;

static void must(int status) {
    if (status == MPIDATA_SUCCESS || status == MPIDATA_END) return;
    (void)fprintf(stderr, "%s: %s\n", mpidata_strerror(status), mpidata_last_error());
    exit(1);
}

static int64_t below(int64_t n) {
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((state >> 33) % (uint64_t)n);
}

/* Returns the same permutation on all ranks. */
static int64_t *permutation(int64_t rows) {
    int64_t *of = malloc((size_t)rows * sizeof *of);
    if (!of) exit(1);
    for (int64_t i = 0; i < rows; i++) of[i] = i;
    for (int64_t i = rows - 1; i > 0; i--) {
        const int64_t other = below(i + 1), kept = of[i];
        of[i] = of[other];
        of[other] = kept;
    }
    return of;
}

static int ascending(const void *one, const void *other) {
    const int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

static mpidata_map *make_map(const char *how, const quarter *mine, int64_t rows) {
    mpidata_map *map;
    int64_t *of = permutation(rows), *own = of + mine->first;
    for (int64_t i = 0; i < mine->n && !strcmp(how, "numbered"); i++) own[i] = mine->first + i;
    if (!strcmp(how, "dealt")) qsort(own, (size_t)mine->n, sizeof *own, ascending);
    must(mpidata_map_create(mine->n, own, &map));
    free(of);
    return map;
}

static void put(const char *how, const quarter *mine) {
    const int64_t shape[] = {mine->n, mine->columns}, start[] = {mine->first, 0}, wide = 2 * mine->columns,
                  strides[] = {wide * (int64_t)sizeof(float), sizeof(float)};
    if (mine->map)
        must(mpidata_put_mapped("u", mine->values, MPIDATA_FLOAT32, 2, shape, mine->map));
    else if (!strcmp(how, "strided"))
        must(mpidata_put_strided("u", mine->values, MPIDATA_FLOAT32, 2, shape, start, strides));
    else
        must(mpidata_put_block("u", mine->values, MPIDATA_FLOAT32, 2, shape, start));
}

int main(int argc, char **argv) {
    MPI_Comm group;
    int rank, size;
    int64_t simulation, step = 0;
    if (argc < 5) return 2;
    (void)MPI_Init(&argc, &argv);
    must(mpidata_init(MPI_COMM_WORLD, &group));
    (void)MPI_Comm_rank(group, &rank);
    (void)MPI_Comm_size(group, &size);
    volatile int64_t *gate = gate_map(argv[1]);
    const char *how = argv[3];
    const int64_t columns = atol(argv[4]) / (int64_t)sizeof(float), rows = atol(argv[2]) / columns;
    quarter mine = {.first = rows * rank / size, .columns = columns};
    mine.n = rows * (rank + 1) / size - mine.first;
    mine.values = gate_memory((size_t)(2 * mine.n * columns) * sizeof(float));
    if (strcmp(how, "blocks") && strcmp(how, "strided")) mine.map = make_map(how, &mine, rows);
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS)
        for (;; step++) {
            while (step == gate[GATE_LAST_STEP] && !gate[GATE_STOP]) {
                must(mpidata_wait()); /* sends packed samples and lets MPI move them */
                (void)usleep(PAUSE_US);
            }
            if (gate[GATE_STOP]) break;
            put(how, &mine);
            if (mpidata_step((double)step)) break;
        }
    must(mpidata_finalize());
    must(mpidata_map_free(&mine.map));
    free(mine.values);
    return MPI_Finalize();
}
