/* A fountain: each rank of the group has a nozzle that emits particles at random times; they fly in a parabola and
 * vanish when they reach the ground. Each rank puts all of its own particles; in the first step there are none. A
 * trainer gets the particles of all ranks in rank order.
 *
 * MPI return codes are not checked: the error handlers of MPI_COMM_WORLD and of the group end this rank on an error. */
#include <math.h>
#include <mpi.h>
#include <mpidata.h>
#include <stdio.h>

enum { STEPS = 40, MOST = 500 }; /* of a rank */
static const double STEP_TIME = 0.1;

typedef struct {
    double x, y, u, v;
} particle;

typedef struct {
    particle list[MOST];
    int64_t count;
    uint64_t chance;
    double nozzle;
} fountain;

/* Random numbers from 0 to 1, the same on every machine (Knuth's MMIX). */
static double draw(fountain *f) {
    f->chance = f->chance * 6364136223846793005u + 1442695040888963407u;
    return (double)(f->chance >> 11) / 9007199254740992.0;
}

/* Emit between none and twice `rate` particles. */
static void emit(fountain *f, double rate, double speed) {
    for (int64_t born = (int64_t)(2 * rate * draw(f) + 0.5); born > 0 && f->count < MOST; born--) {
        double angle = 1.5707963 + draw(f) - 0.5, pace = speed * (0.5 + draw(f));
        f->list[f->count++] = (particle){f->nozzle, 0, pace * cos(angle), pace * sin(angle)};
    }
}

static void advance(fountain *f, double gravity) {
    int64_t left = 0;
    for (int64_t i = 0; i < f->count; i++) {
        particle p = f->list[i];
        p.x += STEP_TIME * p.u;
        p.y += STEP_TIME * p.v - 0.5 * gravity * STEP_TIME * STEP_TIME;
        p.v -= STEP_TIME * gravity;
        if (p.y >= 0) f->list[left++] = p;
    }
    f->count = left;
}

/* Energy of the particles of all ranks. */
static double energy(const fountain *f, MPI_Comm group) {
    double own = 0, all;
    for (int64_t i = 0; i < f->count; i++) own += 0.5 * (f->list[i].u * f->list[i].u + f->list[i].v * f->list[i].v);
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, group);
    return all;
}

/* Make one step; return the library's status. */
static int make_step(fountain *f, int step, MPI_Comm group, int rank) {
    double rate, speed, gravity;
    mpidata_param("rate", &rate);
    mpidata_param("speed", &speed);
    mpidata_param("gravity", &gravity);
    const int64_t shape[] = {f->count, 4}; /* this rank's part; it may be empty */
    mpidata_put("state", f->list, MPIDATA_FLOAT64, 2, shape);
    double before = energy(f, group);
    advance(f, gravity); /* they were copied */
    double after = energy(f, group);
    if (rank == 0) {
        mpidata_put("energy", &before, MPIDATA_FLOAT64, 0, NULL);
        mpidata_put("energy_next", &after, MPIDATA_FLOAT64, 0, NULL);
    }
    emit(f, rate, speed);
    return mpidata_step(STEP_TIME * step);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm group;
    if (mpidata_init(MPI_COMM_WORLD, &group)) {
        fprintf(stderr, "%s\n", mpidata_last_error());
        return 1;
    }
    int rank;
    MPI_Comm_rank(group, &rank);
    int64_t simulation;
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        fountain f = {.chance = 1000 * (uint64_t)simulation + (uint64_t)rank, .nozzle = rank};
        for (int step = 0; step < STEPS; step++)
            if (make_step(&f, step, group, rank)) break; /* the job is stopping */
    }
    mpidata_finalize();
    return MPI_Finalize();
}
