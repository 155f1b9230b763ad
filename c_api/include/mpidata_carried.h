/* mpidata for a program that is no rank of the job: of another MPI, or of none. A carrier, which is a rank, starts the
 * program and sends what it puts (solvers.carried in the job file).
 *
 * The calls are those of mpidata.h, with mpidata_attach in place of mpidata_init; no MPI is needed to compile or link
 * with this header. A complete solver in C:
 *
 *     #include <mpidata_carried.h>
 *
 *     int main(void) {
 *         if (mpidata_attach()) return 1;                // the reason is on standard error
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
 * "The group" of mpidata.h are here the ranks of the program, and "collective" means that each of them makes the call:
 * they may make it at different times, and the call waits for the others only where it returns something of theirs. A
 * program that uses MPI keeps its MPI_COMM_WORLD. The arrays of mpidata_iput, and those that mpidata_infer_begin sends, are copied
 * by the call. mpidata_infer_begin waits for the carrier where a question takes more memory than those before it. */
#ifndef MPIDATA_CARRIED_H
#define MPIDATA_CARRIED_H

#ifndef MPIDATA_WITHOUT_MPI
#define MPIDATA_WITHOUT_MPI
#endif
#include "mpidata.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Attach to the carrier; called by all ranks of the program, once each. Blocks (without spinning) until the carrier has
 * answered. Outside a job it says so, and the program runs alone (see mpidata.h). Errors: MPIDATA_ERR_ORDER (called twice),
 * MPIDATA_ERR_JOB (the carrier is gone, or refuses this process, or is of another version). The sentence also goes to
 * standard error. */
int mpidata_attach(void);

#ifdef __cplusplus
}
#endif
#endif
