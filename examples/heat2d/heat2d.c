/* Heat equation u_t = alpha (u_xx + u_yy) on the unit square: one simulation of the ensemble per parameter set.
 *
 * 64 x 64 interior points, second-order differences in space, explicit Euler in time; the four sides keep their
 * temperature. The grid is split over the ranks of the group in both directions; each rank sends its own block of every
 * sample. u[j][i] is the temperature at x = (i + 1) h, y = (j + 1) h.
 *
 *     ./heat2d             a solver of the job (see heat2d.yaml), or one simulation when started alone
 *     ./heat2d --verify    compare with an analytic solution on two grids; also under mpirun
 *
 * MPI return codes are not checked: the error handlers of MPI_COMM_WORLD and of the group end this rank on an error. */
#include <math.h>
#include <mpi.h>
#include <mpidata.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 64, STEPS = 100 };
static const double STEP_TIME = 0.005;

typedef struct {
    MPI_Comm comm; /* Cartesian */
    int n;         /* points per direction of the whole grid */
    int rows, columns, row, column; /* this rank's block and its start */
    int down, up, west, east;       /* neighbours, or MPI_PROC_NULL at a side */
    MPI_Datatype column_type;
    double *u, *next; /* (rows + 2) x (columns + 2): the block with a halo, which holds the boundary values at a side */
    double *block;    /* rows x columns, to send */
} grid;

static size_t at(const grid *g, int j, int i) { return (size_t)(j + 1) * (size_t)(g->columns + 2) + (size_t)(i + 1); }

static void *allocate(size_t count) {
    void *memory = malloc(count * sizeof(double));
    if (!memory) MPI_Abort(MPI_COMM_WORLD, 1);
    return memory;
}

static grid make_grid(MPI_Comm comm, int n) {
    grid g = {.n = n};
    int size, rank, ranks[2] = {0, 0}, open[2] = {0, 0}, place[2];
    MPI_Comm_size(comm, &size);
    MPI_Dims_create(size, 2, ranks);
    MPI_Cart_create(comm, 2, ranks, open, 0, &g.comm);
    MPI_Comm_rank(g.comm, &rank);
    MPI_Cart_coords(g.comm, rank, 2, place);
    MPI_Cart_shift(g.comm, 0, 1, &g.down, &g.up);
    MPI_Cart_shift(g.comm, 1, 1, &g.west, &g.east);
    g.row = n * place[0] / ranks[0]; /* uneven if n is not a multiple */
    g.rows = n * (place[0] + 1) / ranks[0] - g.row;
    g.column = n * place[1] / ranks[1];
    g.columns = n * (place[1] + 1) / ranks[1] - g.column;
    MPI_Type_vector(g.rows, 1, g.columns + 2, MPI_DOUBLE, &g.column_type);
    MPI_Type_commit(&g.column_type);
    g.u = allocate((size_t)(g.rows + 2) * (size_t)(g.columns + 2));
    g.next = allocate((size_t)(g.rows + 2) * (size_t)(g.columns + 2));
    g.block = allocate((size_t)g.rows * (size_t)g.columns);
    return g;
}

static void free_grid(grid *g) {
    MPI_Type_free(&g->column_type);
    MPI_Comm_free(&g->comm);
    free(g->u);
    free(g->next);
    free(g->block);
}

/* Initial and boundary values. The halo between two ranks is overwritten by the first exchange. */
static void fill(grid *g, double initial, double left, double right, double bottom, double top) {
    for (int j = -1; j <= g->rows; j++)
        for (int i = -1; i <= g->columns; i++)
            g->u[at(g, j, i)] = i < 0 ? left : i == g->columns ? right : j < 0 ? bottom : j == g->rows ? top : initial;
    memcpy(g->next, g->u, (size_t)(g->rows + 2) * (size_t)(g->columns + 2) * sizeof(double));
}

static void exchange_halo(grid *g) {
    double *u = g->u;
    int rows = g->rows, columns = g->columns;
    MPI_Sendrecv(&u[at(g, rows - 1, 0)], columns, MPI_DOUBLE, g->up, 0, &u[at(g, -1, 0)], columns, MPI_DOUBLE, g->down, 0,
                 g->comm, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&u[at(g, 0, 0)], columns, MPI_DOUBLE, g->down, 1, &u[at(g, rows, 0)], columns, MPI_DOUBLE, g->up, 1,
                 g->comm, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&u[at(g, 0, columns - 1)], 1, g->column_type, g->east, 2, &u[at(g, 0, -1)], 1, g->column_type, g->west, 2,
                 g->comm, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&u[at(g, 0, 0)], 1, g->column_type, g->west, 3, &u[at(g, 0, columns)], 1, g->column_type, g->east, 3,
                 g->comm, MPI_STATUS_IGNORE);
}

/* Advance by `time`, with enough substeps that alpha dt / h^2 <= 0.2 (the scheme is stable up to 0.25). */
static void advance(grid *g, double alpha, double time) {
    double h = 1.0 / (g->n + 1);
    int substeps = (int)ceil(alpha * time / (0.2 * (h * h)));
    if (substeps < 1) substeps = 1;
    double factor = alpha * (time / substeps) / (h * h);
    size_t width = (size_t)(g->columns + 2);
    for (int s = 0; s < substeps; s++) {
        exchange_halo(g);
        for (int j = 0; j < g->rows; j++) {
            const double *u = &g->u[at(g, j, 0)];
            double *next = &g->next[at(g, j, 0)];
            for (int i = 0; i < g->columns; i++) /* the brackets fix the order, so that all decompositions agree */
                next[i] = u[i] + factor * (((u[i - 1] + u[i + 1]) + ((u - width)[i] + u[width + (size_t)i])) - 4.0 * u[i]);
        }
        double *swap = g->u;
        g->u = g->next;
        g->next = swap;
    }
}

static const double *block_of(grid *g) {
    for (int j = 0; j < g->rows; j++)
        memcpy(&g->block[(size_t)j * (size_t)g->columns], &g->u[at(g, j, 0)], (size_t)g->columns * sizeof(double));
    return g->block;
}

/* Return the largest error at t = 0.1 against sin(pi x) sin(pi y) exp(-2 pi^2 alpha t), which is 0 at the sides. */
static double error_on_grid(MPI_Comm comm, int n) {
    const double pi = acos(-1.0), alpha = 0.5, time = 0.1, h = 1.0 / (n + 1);
    double error = 0, largest;
    grid g = make_grid(comm, n);
    fill(&g, 0, 0, 0, 0, 0);
    for (int j = 0; j < g.rows; j++)
        for (int i = 0; i < g.columns; i++)
            g.u[at(&g, j, i)] = sin(pi * h * (g.column + i + 1)) * sin(pi * h * (g.row + j + 1));
    advance(&g, alpha, time);
    for (int j = 0; j < g.rows; j++)
        for (int i = 0; i < g.columns; i++) {
            double exact = sin(pi * h * (g.column + i + 1)) * sin(pi * h * (g.row + j + 1)) * exp(-2 * pi * pi * alpha * time);
            error = fmax(error, fabs(g.u[at(&g, j, i)] - exact));
        }
    MPI_Allreduce(&error, &largest, 1, MPI_DOUBLE, MPI_MAX, g.comm);
    free_grid(&g);
    return largest;
}

static void verify(void) {
    double coarse = error_on_grid(MPI_COMM_WORLD, 31), fine = error_on_grid(MPI_COMM_WORLD, 63);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) printf("error %.6e on 31 x 31, %.6e on 63 x 63: order %.3f\n", coarse, fine, log2(coarse / fine));
}

static void simulate(grid *g) {
    double alpha, initial, left, right, bottom, top;
    mpidata_param("alpha", &alpha);
    mpidata_param("initial", &initial);
    mpidata_param("left", &left);
    mpidata_param("right", &right);
    mpidata_param("bottom", &bottom);
    mpidata_param("top", &top);
    fill(g, initial, left, right, bottom, top);
    for (int step = 1; step <= STEPS; step++) {
        advance(g, alpha, STEP_TIME);
        if (mpidata_put_block("temperature", block_of(g), MPIDATA_FLOAT64, 2, (int64_t[]){g->rows, g->columns},
                              (int64_t[]){g->row, g->column}))
            return;
        if (mpidata_step(step * STEP_TIME)) return; /* an error, or MPIDATA_END: the job is stopping */
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc > 1 && !strcmp(argv[1], "--verify")) {
        verify();
        return MPI_Finalize();
    }
    MPI_Comm group;
    if (mpidata_init(MPI_COMM_WORLD, &group)) {
        fprintf(stderr, "%s\n", mpidata_last_error());
        return 1;
    }
    grid g = make_grid(group, N);
    int64_t simulation;
    int status;
    while ((status = mpidata_next(&simulation)) == MPIDATA_SUCCESS) simulate(&g);
    if (status != MPIDATA_END) fprintf(stderr, "%s\n", mpidata_last_error());
    free_grid(&g);
    mpidata_finalize();
    MPI_Finalize();
    return status != MPIDATA_END;
}
