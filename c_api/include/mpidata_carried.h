/* mpidata for a carried program: one that is not a rank of the job, and uses another MPI or none. A carrier, which is a
 * rank, starts the program and sends what it puts (solvers.carried in the job file).
 *
 * The calls are those of mpidata.h, with mpidata_attach in place of mpidata_init. Programs compile and link without
 * MPI. A complete solver in C:
 *
 *     #include <mpidata_carried.h>
 *
 *     int main(void) {
 *         if (mpidata_attach()) return 1;                // the reason is on stderr
 *         const int64_t shape[] = {64, 64};
 *         int64_t simulation;
 *         while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
 *             double alpha, u[64][64] = {{0}};
 *             mpidata_param("alpha", &alpha);
 *             for (int step = 0; step < 100; step++) {
 *                 advance(u, alpha);
 *                 mpidata_put("temperature", u, MPIDATA_FLOAT64, 2, shape);
 *                 if (mpidata_step(0.01 * (step + 1))) break;
 *             }
 *         }
 *         return mpidata_finalize() != MPIDATA_SUCCESS;
 *     }
 *
 * Here "the group" of mpidata.h means the ranks of the program, and "collective" means that each of them makes the
 * call. They may call at different times; the call waits for the others only if it returns something of theirs. A
 * program that uses MPI keeps its MPI_COMM_WORLD. mpidata_iput copies its array, and mpidata_infer_begin those that it
 * sends. mpidata_infer_begin waits for the carrier if a question needs more memory than those before it. */
#ifndef MPIDATA_CARRIED_H
#define MPIDATA_CARRIED_H

#ifndef MPIDATA_WITHOUT_MPI
#define MPIDATA_WITHOUT_MPI
#endif
#include "mpidata.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Attach to the carrier. Each rank of the program calls this once. Blocks (without spinning) until the carrier has
 * answered. Outside a job, prints a notice, and the program runs without a job (see mpidata.h). Errors:
 * MPIDATA_ERR_ORDER (called twice), MPIDATA_ERR_JOB (the carrier is gone, refuses this process, or has another
 * version). The message is also printed to stderr. */
int mpidata_attach(void);

#ifdef __cplusplus
}
#endif
#endif
