/* mpidata: stream a running simulation into a neural network's training.
 *
 * A complete solver in C, with its five calls (init, next, put, step, finalize):
 *
 *     #include <mpidata.h>
 *
 *     int main(int argc, char **argv) {
 *         MPI_Init(&argc, &argv);
 *         MPI_Comm group;                              // in place of MPI_COMM_WORLD
 *         if (mpidata_init(MPI_COMM_WORLD, &group)) return 1;   // the reason is on standard error
 *         const int64_t shape[] = {64, 64};
 *         int64_t simulation;
 *         while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
 *             double alpha, u[64][64] = {{0}};
 *             mpidata_param("alpha", &alpha);
 *             for (int step = 0; step < 100; step++) {
 *                 advance(u, alpha, group);
 *                 mpidata_put("temperature", u, MPIDATA_FLOAT64, 2, shape);
 *                 if (mpidata_step(0.01 * (step + 1))) break;
 *             }
 *         }
 *         mpidata_finalize();
 *         return MPI_Finalize();
 *     }
 *
 * Build it with: mpicc solver.c $(mpidata config --cflags --libs)
 *
 * Words. A *group* is the ranks that run one *simulation* together. A simulation makes *steps*; at each step it puts
 * *fields* (the arrays that the job file declares under `fields:`), whole or as one *block* per rank. All fields of one
 * step, with the simulation's parameters, are a *sample*. `mpidata_step` commits it: a trainer sees all of it or nothing.
 *
 * Errors. Every function returns MPIDATA_SUCCESS (0), MPIDATA_END where noted, or an MPIDATA_ERR_ code.
 * mpidata_last_error() then has the whole sentence. Inside a job an error of use (an undeclared field, a wrong shape, ...)
 * is also reported to the scheduler, which ends the job with it: trying again cannot help. Outside a job it goes to
 * standard error. The library exits the process only where another rank of its group has died: the simulation is then
 * run again by another group. A program that hangs, or goes on when the job is over, is ended from outside.
 *
 * Threads. Plain MPI_Init is enough. All calls of one process come from one thread (the one that may call MPI).
 * "Collective" means: every rank of the group makes the call, in the same order.
 *
 * Alone. A program started outside a job runs all the same: `init` says so once on standard error, `next` gives one
 * simulation whose parameters come from the environment (MPIDATA_PARAM_<NAME>, 0 where unset), `put` and `step` check
 * their arguments and drop the data. */
#ifndef MPIDATA_H
#define MPIDATA_H

#include <mpi.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MPIDATA_VERSION_MAJOR 0
#define MPIDATA_VERSION_MINOR 1
#define MPIDATA_VERSION_PATCH 0

/* Most dimensions of a field. */
#define MPIDATA_MAX_NDIM 6

enum {
    MPIDATA_SUCCESS = 0,
    MPIDATA_END = 1,           /* no more simulations, or the job is stopping: leave the loop and finalize */
    MPIDATA_ERR_ORDER = 2,     /* a call at the wrong moment: put before init, step outside a simulation, ... */
    MPIDATA_ERR_ARGUMENT = 3,  /* a null pointer, a negative extent, too many dimensions, ... */
    MPIDATA_ERR_FIELD = 4,     /* a field that the job file does not declare, or put twice, or not put, in one step */
    MPIDATA_ERR_SHAPE = 5,     /* a shape that is not the declared one */
    MPIDATA_ERR_DTYPE = 6,     /* a dtype that is neither the declared one nor a float64 for a declared float32 */
    MPIDATA_ERR_BLOCK = 7,     /* a block outside its field; blocks that overlap or leave a hole */
    MPIDATA_ERR_PARAMETER = 8, /* a parameter that the job file does not declare */
    MPIDATA_ERR_JOB = 9,       /* the MPI world is not the one the job was planned for */
    MPIDATA_ERR_MPI = 10,      /* an MPI call failed */
    MPIDATA_ERR_MEMORY = 11,   /* out of memory */
    MPIDATA_ERR_WIRE = 12,     /* a message that does not fit the job */
    MPIDATA_ERR_AGAIN = 13,    /* nothing yet within the given time (trainer and scheduler side only) */
    MPIDATA_CHECKPOINT = 14,   /* this is the batch of a checkpoint (trainer side only) */
    MPIDATA_ERR_DIED = 15      /* a rank has died (trainer and scheduler side only) */
};

typedef enum {
    MPIDATA_FLOAT32 = 1,
    MPIDATA_FLOAT64 = 2,
    MPIDATA_INT32 = 3,
    MPIDATA_INT64 = 4,
    MPIDATA_UINT8 = 5
} mpidata_dtype;

/* Join the job.
 *
 * @param[in]  world  communicator of all ranks of the job: MPI_COMM_WORLD (of the spawned ranks in the spawn start)
 * @param[out] group  communicator of this rank's group, to use in place of MPI_COMM_WORLD; freed by mpidata_finalize.
 *                    Its error handler ends only the failing rank, not the job.
 *
 * Collective over world; blocks (without spinning) until every rank of the job has joined. MPI must be initialised.
 * Errors: MPIDATA_ERR_ORDER (called twice, MPI not initialised), MPIDATA_ERR_JOB (wrong number of ranks, or an mpirun
 * that does not belong to the MPI this library was built with), MPIDATA_ERR_MPI; the sentence also goes to standard
 * error, as there is no job yet that could show it. */
int mpidata_init(MPI_Comm world, MPI_Comm *group);

/* Ask for the next simulation; closes the current one, whose steps so far are then counted as all it has.
 *
 * @param[out] simulation  id of the simulation, from 0, the same on all ranks of the group
 *
 * Returns MPIDATA_SUCCESS, or MPIDATA_END when there are no more. Collective over the group; blocks (without spinning)
 * until the window's sends have been matched and the scheduler has answered. */
int mpidata_next(int64_t *simulation);

/* Value of a parameter of the current simulation. Local; does not block.
 *
 * @param[in]  name   as under `parameters: space:` in the job file
 * @param[out] value  its value
 *
 * Errors: MPIDATA_ERR_PARAMETER, MPIDATA_ERR_ORDER (outside a simulation). */
int mpidata_param(const char *name, double *value);

/* Put a whole field into the current sample: exactly one rank of the group does so for each field.
 *
 * @param[in] field   name, as under `fields:` in the job file
 * @param[in] values  array in C order (last index fastest), shape[0] x ... x shape[ndim-1] elements of dtype; copied,
 *                    so it may be changed as soon as the call returns
 * @param[in] dtype   the declared one, or MPIDATA_FLOAT64 where float32 is declared (converted once, here)
 * @param[in] ndim    0 (a scalar) to MPIDATA_MAX_NDIM
 * @param[in] shape   ndim extents: the declared shape; may be NULL where ndim is 0
 *
 * Local. Blocks only while the send window (solvers.window in the job file) is full: backpressure of a trainer whose
 * buffer is full. */
int mpidata_put(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape);

/* Put this rank's block of a field into the current sample: all ranks that hold a part do so, and the blocks cover the
 * field exactly. A rank may put several blocks, of all fields together 4096 in one step; a block of no elements is
 * allowed.
 *
 * @param[in] values  the block, contiguous, in C order
 * @param[in] shape   ndim extents of the block
 * @param[in] start   ndim indices, from 0, of the block's first element within the field
 *
 * Otherwise as mpidata_put. Holes and overlaps are found when the sample is assembled and end the job with
 * MPIDATA_ERR_BLOCK. */
int mpidata_put_block(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                      const int64_t *start);

/* As mpidata_put_block (start NULL: the whole field, as mpidata_put), without the copy: the array belongs to the library
 * until mpidata_wait or mpidata_wait_for returns, and must not be changed or freed before. With a conversion (float64 to
 * float32) it copies. */
int mpidata_iput(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                 const int64_t *start);

/* Wait until every array given to mpidata_iput before the last mpidata_step may be reused. Local. Blocks (without
 * spinning) until the trainers have taken them. Arrays of a sample that is not committed yet stay with the library. */
int mpidata_wait(void);

/* As mpidata_wait, for one array: the one that mpidata_iput was given as `values`. The others may still be under way, so
 * that a solver with two arrays fills one while the other is sent. Returns at once for an array that is not lent. */
int mpidata_wait_for(const void *values);

/* Commit the sample: everything put since the last step becomes one sample, step 0, 1, 2, ... of this simulation.
 *
 * @param[in] time  physical time of the sample, in the solver's units; must be finite and the same on all ranks of
 *                  the group.
 *
 * Returns MPIDATA_SUCCESS, or MPIDATA_END when the job is stopping: leave the simulation and finalize. Collective over
 * the group; nonblocking unless the send window is full, but for the first sample to each trainer, with which the
 * transport connects: at most 0.1 s. Small samples of a fast solver share messages; one that has not left yet does so in
 * a later call. A rank that is one whole step ahead of another waits for it. */
int mpidata_step(double time);

/* Give the current simulation up (it diverged, say): it is set aside, not tried again, and the group can call
 * mpidata_next. Samples already committed stay with the trainers.
 *
 * @param[in] reason  one sentence for the log; that of the group's rank 0 counts
 *
 * Collective over the group. */
int mpidata_fail(const char *reason);

/* Close the current simulation if there is one, send what is left and leave the job. Call before MPI_Finalize. A program
 * may leave after any number of simulations, one for instance; the rest goes to the other groups.
 * Collective over the group; blocks (without spinning) until the trainers have taken every sample of this rank. */
int mpidata_finalize(void);

/* What a status code means; a constant string. Any thread, any time. */
const char *mpidata_strerror(int status);

/* The last error of this process as a sentence: what, where, how to fix; "" if there was none. Valid until the next
 * call. */
const char *mpidata_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
