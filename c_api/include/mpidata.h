/* mpidata: stream a running simulation into a neural network's training.
 *
 * A complete solver in C, with its five calls (init, next, put, step, finalize):
 *
 *     #include <mpidata.h>
 *
 *     int main(int argc, char **argv) {
 *         MPI_Init(&argc, &argv);
 *         MPI_Comm group;                              // in place of MPI_COMM_WORLD
 *         if (mpidata_init(MPI_COMM_WORLD, &group)) return 1;   // the reason is on stderr
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
 * Terms. A *group* is the set of ranks that run one *simulation* together. A simulation makes *steps*; in each step it
 * puts *fields* (the arrays that the job file declares under `fields:`), whole or in *blocks*, each rank its own. All
 * fields of one step, with the simulation's parameters, are a *sample*. `mpidata_step` commits the sample: a trainer
 * sees all of it or nothing.
 *
 * Errors. Every function returns MPIDATA_SUCCESS (0), MPIDATA_END, MPIDATA_CANCELLED or an MPIDATA_ERR_ code. From
 * mpidata_next, MPIDATA_END means that there are no more simulations; from any other function, that the job is
 * stopping. MPIDATA_CANCELLED means that the training script no longer needs this simulation: leave it, and call
 * mpidata_next. After an error mpidata_last_error() returns the error message. Inside a job, a misuse of the library
 * (an undeclared field, a wrong shape, ...) is also reported to the scheduler. The scheduler ends the job with that
 * message, because another try would fail in the same way. Outside a job the message is printed to stderr. The library
 * exits the process only if another rank of its group has died, or after an MPI error on the group's communicator.
 * Another group then runs the simulation again. mpidata ends a program that hangs, or that does not end when the job is
 * over.
 *
 * Threads. Plain MPI_Init is enough. All calls of a process must come from one thread, the one that may call MPI.
 * "Collective" means that every rank of the group makes the call, in the same order. A "local" call needs no other
 * rank.
 *
 * Without a job. A program also runs outside a job: mpidata_init prints one notice to stderr, and mpidata_next returns
 * one simulation. Its parameters come from the environment (MPIDATA_PARAM_<NAME>; 0 if unset). `put` and `step` check
 * their arguments and drop the data. */
#ifndef MPIDATA_H
#define MPIDATA_H

#ifndef MPIDATA_WITHOUT_MPI /* see mpidata_carried.h */
#include <mpi.h>
#endif
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MPIDATA_VERSION_MAJOR 0
#define MPIDATA_VERSION_MINOR 2
#define MPIDATA_VERSION_PATCH 0

/* Largest number of dimensions of a field. */
#define MPIDATA_MAX_NDIM 6

/* Size of a buffer for the text of any parameter, including the terminating NUL. */
#define MPIDATA_MAX_TEXT 256

enum {
    MPIDATA_SUCCESS = 0,       /* no error */
    MPIDATA_END = 1,           /* no more simulations, or the job is stopping: leave the loop and finalize */
    MPIDATA_ERR_ORDER = 2,     /* a call at the wrong time: put before init, step outside a simulation, ... */
    MPIDATA_ERR_ARGUMENT = 3,  /* a null pointer, a negative extent, too many dimensions, ... */
    MPIDATA_ERR_FIELD = 4,     /* a field that is undeclared, was put twice in a step, or was not put */
    MPIDATA_ERR_SHAPE = 5,     /* the shape differs from the declared one */
    MPIDATA_ERR_DTYPE = 6,     /* a dtype that is neither the declared one nor converted to it */
    MPIDATA_ERR_BLOCK = 7,     /* a block outside its field; blocks that overlap or leave a gap */
    MPIDATA_ERR_PARAMETER = 8, /* a parameter that the job file does not declare */
    MPIDATA_ERR_JOB = 9,       /* MPI_COMM_WORLD does not match the job; of a carried program: its carrier is gone */
    MPIDATA_ERR_MPI = 10,      /* an MPI call failed */
    MPIDATA_ERR_MEMORY = 11,   /* out of memory */
    MPIDATA_ERR_WIRE = 12,     /* a message that does not match the job */
    MPIDATA_ERR_AGAIN = 13,    /* nothing has been published yet (on trainers and the scheduler: a timeout) */
    MPIDATA_CHECKPOINT = 14,   /* this is the batch of a checkpoint (trainer side only) */
    MPIDATA_ERR_DIED = 15,     /* a rank has died (trainer and scheduler side only) */
    MPIDATA_MEET = 16,         /* the trainers must meet, because one may have died (trainer side only) */
    MPIDATA_CANCELLED = 17,    /* the training script has cancelled this simulation: leave it and call mpidata_next */
    MPIDATA_ERR_DEVICE = 18    /* a call of a device driver failed */
};

/* The dtypes of fields, and of the arrays that are put. The call that puts an array converts these, once:
 *
 *     declared            may also be put
 *     float32             float64
 *     float16, bfloat16   float64, float32
 *     complex64           complex128
 *
 * Each number is rounded to nearest (ties to even). A number that is too large becomes infinite; NaN stays NaN. */
typedef enum {
    MPIDATA_FLOAT32 = 1,
    MPIDATA_FLOAT64 = 2,
    MPIDATA_INT32 = 3,
    MPIDATA_INT64 = 4,
    MPIDATA_UINT8 = 5,
    MPIDATA_INT8 = 6,
    MPIDATA_INT16 = 7,
    MPIDATA_UINT16 = 8,
    MPIDATA_UINT32 = 9,
    MPIDATA_UINT64 = 10,
    MPIDATA_BOOL = 11,       /* _Bool or unsigned char; any byte other than 0 is true, and arrives as 1 */
    MPIDATA_FLOAT16 = 12,    /* IEEE 754, 16 bits: _Float16, or the bits in a uint16_t */
    MPIDATA_BFLOAT16 = 13,   /* the upper 16 bits of a float32: __bf16, or the bits in a uint16_t */
    MPIDATA_COMPLEX64 = 14,  /* float complex: a real part and an imaginary part, float32 each */
    MPIDATA_COMPLEX128 = 15  /* double complex */
} mpidata_dtype;

#ifndef MPIDATA_WITHOUT_MPI
/* Join the job.
 *
 * @param[in]  world  MPI_COMM_WORLD: all ranks of the job; with `start: spawn`, those that were spawned together
 * @param[out] group  communicator of this rank's group, to use in place of MPI_COMM_WORLD; mpidata_finalize frees it.
 *                    An MPI error on it ends only the rank where it occurs, not the job.
 *
 * Collective over world. Blocks (without spinning) until every rank of the job has joined. MPI must be initialized.
 * Errors: MPIDATA_ERR_ORDER (called twice, or MPI not initialized), MPIDATA_ERR_JOB (a wrong number of ranks, or an
 * mpirun that does not belong to the MPI that this library was built with), MPIDATA_ERR_MPI. The message is also
 * printed to stderr, because no job can report it yet. */
int mpidata_init(MPI_Comm world, MPI_Comm *group);
#endif

/* Request the next simulation. This closes the current one, which then has the steps made so far.
 *
 * @param[out] simulation  id of the simulation, from 0, the same on all ranks of the group
 *
 * Returns MPIDATA_SUCCESS, or MPIDATA_END when there are no more simulations. Collective over the group. Blocks
 * (without spinning) until the last samples have been sent, which wait while solvers.in_flight samples are in flight,
 * and until the scheduler has answered. */
int mpidata_next(int64_t *simulation);

/* Get the value of a parameter of the current simulation. Local; does not block.
 *
 * @param[in]  name   as under `parameters: space:` in the job file
 * @param[out] value  its value; if the parameter is a text, the position of the text in the job file's list, from 0
 *
 * Errors: MPIDATA_ERR_PARAMETER, MPIDATA_ERR_ORDER (outside a simulation). */
int mpidata_param(const char *name, double *value);

/* Get the text of a parameter of the current simulation, if the job file gives texts. Local; does not block.
 *
 * @param[in]  name  as under `parameters: space:` in the job file
 * @param[out] text  its text, in UTF-8
 * @param[in]  size  size of `text` in bytes, including the terminating NUL; MPIDATA_MAX_TEXT is always enough
 *
 * Errors: MPIDATA_ERR_PARAMETER (also for a number), MPIDATA_ERR_ARGUMENT (`text` is too small), MPIDATA_ERR_ORDER
 * (outside a simulation). */
int mpidata_param_text(const char *name, char *text, size_t size);

/* Put a whole field into the current sample. Exactly one rank of the group does this for each field.
 *
 * If the shape of the field contains the name of a length, the array is this rank's part. The parts are joined along
 * that dimension, in the order of the ranks, and of each rank's calls. Any number of ranks may put parts, also parts of
 * length 0; at least one rank must put one. All parts together have at most the limit that the job file declares under
 * `lengths:`. A field with `per: simulation` is put after mpidata_next and before the first mpidata_step, and holds for
 * all steps.
 *
 * @param[in] field   name, as under `fields:` in the job file
 * @param[in] values  array in C order (last index fastest) of shape[0] x ... x shape[ndim-1] elements of dtype. It is
 *                    copied, so it may be changed as soon as the call returns
 * @param[in] dtype   the declared one, or one that is converted to it: see mpidata_dtype
 * @param[in] ndim    0 (a scalar) to MPIDATA_MAX_NDIM
 * @param[in] shape   ndim extents: the declared shape, with the extent of this part in place of a name; may be NULL if
 *                    ndim is 0
 *
 * Local. Blocks only while solvers.in_flight samples are in flight (see the job file), because a trainer's buffer is
 * full. Returns MPIDATA_CANCELLED, as all puts do, if the simulation is cancelled. */
int mpidata_put(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape);

/* Put this rank's block of a field into the current sample. All ranks that hold a part of the field do this. Together
 * their blocks cover each element of the field exactly once. In a step a rank may put up to 4096 blocks, those of all
 * fields counted together; a block may have no elements.
 *
 * @param[in] values  the block, contiguous, in C order
 * @param[in] shape   ndim extents of the block
 * @param[in] start   ndim indices, from 0, of the block's first element within the field
 *
 * Otherwise as mpidata_put. A gap or an overlap is found in a later call of the group, or by the trainer, and ends the
 * job with MPIDATA_ERR_BLOCK. */
int mpidata_put_block(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                      const int64_t *start);

/* As mpidata_put_block, or with start NULL as mpidata_put, for an array whose elements are not contiguous. Examples are
 * an array without its ghost cells, a column, or a component of an array of structs. The call gathers the elements.
 *
 * @param[in] values   the first element, at index 0 in each dimension
 * @param[in] strides  ndim numbers of bytes from one index to the next, which may be negative or 0
 *
 * Otherwise as mpidata_put_block. Additional errors: MPIDATA_ERR_ARGUMENT (strides is NULL, or exceeds the address
 * space). */
int mpidata_put_strided(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                        const int64_t *start, const int64_t *strides);

/* Set the stream that all following puts of device memory wait for. Local; does not block, and may be called at any
 * time.
 *
 * @param[in] stream  a CUstream, cudaStream_t or hipStream_t, which must not be freed before another one is set; NULL,
 *                    the initial value: the default stream, which waits for all streams that were not created as
 *                    non-blocking ones
 *
 * mpidata_put, _block, _strided, _mapped and _indices take pointers to CUDA and HIP memory, including managed memory,
 * if the program has loaded the driver. They wait for the work that was submitted to this stream before. They return
 * when the array has been read, so it may then be changed. Of a strided array, everything between its first and its
 * last element is read. mpidata_iput and mpidata_infer refuse such pointers. If a call of the driver fails, the put
 * returns MPIDATA_ERR_DEVICE, and so do all later calls: end the program then, and the simulation is tried again. */
int mpidata_device_stream(void *stream);

/* A map: the row numbers, within the whole field, of the rows that this rank holds, for example of a mesh partition. */
typedef struct mpidata_map mpidata_map;

/* Create a map. Local; does not block.
 *
 * @param[in]  n        number of rows
 * @param[in]  indices  n indices, from 0, copied: row i is row indices[i] of the field; may be NULL if n is 0
 * @param[out] map      for mpidata_put_mapped and mpidata_put_indices, any number of times; NULL after an error
 *
 * A trainer gets the indices of a map once, with the first sample that needs them. Therefore create a map once for each
 * partition, not in each step. Errors: MPIDATA_ERR_ARGUMENT (n or an index is negative, or a pointer is NULL),
 * MPIDATA_ERR_MEMORY. */
int mpidata_map_create(int64_t n, const int64_t *indices, mpidata_map **map);

/* Free a map, also if its rows are still in flight, and set *map to NULL. NULL is ignored. Local; does not block. */
int mpidata_map_free(mpidata_map **map);

/* As mpidata_put_block, for rows in any order: row i of the values is row map[i] of the field. Rows count along the
 * dimension that has the name of a length, or else along dimension 0; the other extents are the declared ones.
 *
 * @param[in] shape  ndim extents; the extent of the rows is n of the map
 *
 * In a step the maps of all ranks together contain each row of the field exactly once. A length is the number of all
 * rows. In one step a field is put by maps or in another way, but not both. Otherwise as mpidata_put_block. A row that
 * is missing or was put twice is found in a later call of the group, or by the trainer, and ends the job with
 * MPIDATA_ERR_BLOCK. */
int mpidata_put_mapped(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                       const mpidata_map *map);

/* As mpidata_put, for a field that is declared with `index` and whose values are local indices of this rank, including
 * ghost rows. Local index i becomes map[i] in the copy. Local indices count from `base` in the job file, the indices of
 * the map from 0.
 *
 * @param[in] map  the map; if NULL, the trainer adds the number of rows that the ranks before this one have put along
 *                 the length that `index` names
 *
 * Additional errors: MPIDATA_ERR_ARGUMENT (a local index that is not in the map, or a field without `index`). */
int mpidata_put_indices(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                        const mpidata_map *map);

/* As mpidata_put_block, or with start NULL as mpidata_put, but without the copy. The array is lent to the library until
 * mpidata_wait or mpidata_wait_for returns, and must not be changed or freed before. An array that is converted, or is
 * of MPIDATA_BOOL, is still copied. */
int mpidata_iput(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                 const int64_t *start);

/* Wait until every array that was lent by mpidata_iput before the last mpidata_step may be changed again. Local. Blocks
 * (without spinning) until the trainers have received the arrays. Arrays of a sample that is not committed yet stay
 * lent. Samples that wait for others to share a message are sent now. */
int mpidata_wait(void);

/* As mpidata_wait, for one array: the `values` that were passed to mpidata_iput. Other arrays may still be in flight,
 * so a solver with two arrays can fill one while the other is sent. Returns at once if the array is not lent. */
int mpidata_wait_for(const void *values);

/* Commit the sample: everything put since the last step becomes one sample, step 0, 1, 2, ... of this simulation.
 *
 * @param[in] time  physical time of the sample, in the solver's units; finite, and the same on all ranks of the group
 *
 * Returns MPIDATA_SUCCESS, or MPIDATA_END when the job is stopping: leave the simulation and finalize. If the training
 * script has cancelled this simulation (stream.cancel), returns MPIDATA_CANCELLED, on all ranks of the group from the
 * same step on: leave the simulation and call mpidata_next. Everything put since the last step is then dropped.
 *
 * Collective over the group, whose ranks all make the same number of steps. Does not block, except
 *
 * - while solvers.in_flight samples are in flight,
 * - for at most 0.1 s with the first sample to each trainer, while MPI connects to the trainer,
 * - on a rank that is one whole step ahead of another, until the other has caught up.
 *
 * Small samples of a fast solver share messages; a sample that is held back for this is sent in a later call. */
int mpidata_step(double time);

/* An array of a question. */
typedef struct {
    const char *name;     /* its name in the function's dict */
    void *values;         /* in C order, contiguous; only read if the array is sent */
    mpidata_dtype dtype;
    int ndim;             /* 1 to MPIDATA_MAX_NDIM */
    const int64_t *shape; /* ndim extents; the first one is the number of rows, the same in all arrays of a question */
} mpidata_array;

/* An open question; 0: none. */
typedef int64_t mpidata_question;

/* Send a question to an inference rank (`inference` in the job file), and wait for the answer. The function of the
 * inference rank gets the rows of `in`, joined with those of other questions; this call returns its rows of `out`.
 *
 * @param[in]  in, n_in    1 to 64 arrays with any number of rows, also 0
 * @param[out] out, n_out  1 to 64 arrays; the function must return each of them, with this dtype and shape
 * @param[out] version     version of the weights with which all rows were computed; 0: no weights were published.
 *                         May be NULL
 *
 * Local: each rank of a group may ask, or not. Blocks (without spinning) until the answer has arrived; samples are sent
 * meanwhile. If an inference rank dies, another one answers its questions. Returns MPIDATA_END when the job is
 * stopping, and MPIDATA_CANCELLED as mpidata_step does, until mpidata_next. Errors: MPIDATA_ERR_ORDER (outside a
 * simulation, in a job without `inference`, or outside a job), MPIDATA_ERR_ARGUMENT, MPIDATA_ERR_SHAPE,
 * MPIDATA_ERR_DTYPE. */
int mpidata_infer(const mpidata_array *in, int n_in, const mpidata_array *out, int n_out, int64_t *version);

/* As mpidata_infer, but returns at once. The values of all arrays, and `version`, are lent until mpidata_infer_wait
 * returns, and must not be changed or freed before; names and shapes may. At most 8 questions may be open. mpidata_next
 * and mpidata_finalize wait for open questions: when they return, nothing is lent, and all questions are answered.
 * Questions stay open if the simulation is cancelled, or abandoned by mpidata_fail.
 *
 * @param[out] question  for mpidata_infer_wait */
int mpidata_infer_begin(const mpidata_array *in, int n_in, const mpidata_array *out, int n_out, int64_t *version,
                        mpidata_question *question);

/* Wait until a question is answered, and set *question to 0. Returns at once if it is 0, or if mpidata_next has waited
 * for the question. The answer also arrives if the simulation is cancelled or was abandoned. Returns MPIDATA_END when
 * the job is stopping; the arrays are then no longer lent either. */
int mpidata_infer_wait(mpidata_question *question);

/* Get what a trainer has published since the last call (mpidata.publish in its script): all of it, of one version.
 *
 * @param[out] version  the version that this group has now, the same on all its ranks: 1, 2, ... with each call of
 *                      publish; 0: nothing has been published yet, or the program runs outside a job
 *
 * Returns MPIDATA_SUCCESS, also if nothing is newer and if the simulation is cancelled, or MPIDATA_END when the job is
 * stopping. Collective over the group, between mpidata_init and mpidata_finalize, also outside a simulation. Blocks
 * (without spinning) until a trainer has answered. The trainer answers at once, so this takes one round trip and the
 * transfer of the values. */
int mpidata_refresh(int64_t *version);

/* Get an array that was published, as of this group's last mpidata_refresh. Local; does not block.
 *
 * @param[in]  name    as in mpidata.publish
 * @param[out] dtype   dtype of its elements
 * @param[out] ndim    0 to MPIDATA_MAX_NDIM
 * @param[out] shape   its ndim extents; must have room for MPIDATA_MAX_NDIM
 * @param[out] values  its elements, in C order, aligned to 64 bytes, in memory of the library: read-only, and valid
 *                     until the next mpidata_refresh
 *
 * Returns MPIDATA_ERR_AGAIN if nothing has been published yet; this does not end the job. Errors: MPIDATA_ERR_ARGUMENT
 * (a name that was not published, or a null pointer), MPIDATA_ERR_ORDER (before mpidata_init). */
int mpidata_published(const char *name, mpidata_dtype *dtype, int *ndim, int64_t *shape, const void **values);

/* Abandon the current simulation, for example because it diverged: it is set aside and not tried again. Then call
 * mpidata_next. Samples already committed stay with the trainers.
 *
 * @param[in] reason  one sentence for the log; that of the group's rank 0 counts
 *
 * Returns MPIDATA_CANCELLED if the simulation is cancelled; it then does not count as abandoned. Collective over the
 * group. */
int mpidata_fail(const char *reason);

/* Close the current simulation if there is one, send the remaining samples, and leave the job. Call it before
 * MPI_Finalize. A program may leave after any number of simulations, for example after one; the other groups run the
 * rest. Collective over the group. Blocks (without spinning) until the trainers have received every sample of this
 * rank. */
int mpidata_finalize(void);

/* Return the meaning of a status code, as a constant string. May be called by any thread at any time. */
const char *mpidata_strerror(int status);

/* Return the message of the calling thread's last error: what went wrong, where, and how to fix it; "" if there was
 * none. Valid until the next call. */
const char *mpidata_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
