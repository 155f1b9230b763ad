/* A loader of the job: a rank that reads and prepares data that trainers request; or an inference rank, which runs the model
 * for solver ranks, or the learner, which runs the sampler for the scheduler: they differ only in who asks. Called by Python
 * (mpidata/native/library.py). Not installed.
 *
 * One per process, and one calling thread. A thread of the library makes MPI calls between open and close, hence
 * MPI_THREAD_MULTIPLE. Functions return the codes of mpidata.h. A loader that was given up, or whose scheduler
 * has died, ends. */
#ifndef MPIDATA_LOADER_H
#define MPIDATA_LOADER_H

#include <mpi.h>

#include "parcel/parcel_view.h"

/* Join the job, role: MPIDATA_ROLE_LOADER, _INFERENCE or _LEARNER. Collective over world; blocks without spinning. */
int mpidata_loader_open(MPI_Fint world, int role);

/* Report to the scheduler that it takes requests from now on. */
int mpidata_loader_begin(void);

/* Take the next request, whose memory is the caller's until mpidata_parcel_release. MPIDATA_SUCCESS; MPIDATA_ERR_AGAIN:
 * nothing within timeout_s; MPIDATA_END: this loader must leave. Sleeps while it waits. timeout_s <= 0 means that the
 * caller has work: a loader that the trainers no longer need leaves only when it has none. If it is below 0, an inference
 * rank does not check for new messages. */
int mpidata_loader_next(mpidata_taken *request, double timeout_s);

/* The same. A small request behind which none waits is written to `memory`, of `room` bytes aligned to 8, as by
 * mpidata_parcel_copy: request->parcel is then NULL, and request->bytes as there. */
int mpidata_loader_next_into(mpidata_taken *request, char *memory, int64_t room, double timeout_s);

/* Answer a request with its dataset, kind and number; the answer goes to its sender. parts: n_parts addresses, sizes: bytes of
 * each. They must stay unchanged until mpidata_loader_sent has returned `ticket`. Parts of at most MPIDATA_PIECE_SMALL bytes in
 * total are copied: then a ticket below 0 means that the caller does not ask for it. Does not block. */
int mpidata_loader_answer(const mpidata_taken *request, uint32_t status, int64_t n_parts, const void *const *parts,
                          const int64_t *sizes, int64_t ticket);

/* For an inference rank: take the published arrays if they are newer than this version, 0: none. Their memory is as that of a
 * request, number: their version. The first answer may be that nothing is newer: this version, without parts. Returns
 * MPIDATA_ERR_AGAIN if they are requested; mpidata_loader_next does so when they have come. Does not block. */
int mpidata_loader_published(int64_t version, mpidata_taken *newer);

/* Report an error that ends the job to the scheduler. */
int mpidata_loader_fail(const char *sentence);

/* The ticket of an answer that has left: MPIDATA_SUCCESS; MPIDATA_ERR_AGAIN: there is none. Does not block. */
int mpidata_loader_sent(int64_t *ticket);

/* Whether the next work of this loader may take as long as the start of a program: then loaders.start_timeout_s counts. */
void mpidata_loader_starts(int yes);

/* After MPIDATA_END of mpidata_loader_next: MPIDATA_END: leave the job. MPIDATA_SUCCESS: the trainers no longer need this
 * loader, but it cannot end before the world does, so it waits for requests as a spare. Sleeps until all answers have left. */
int mpidata_loader_rest(void);

/* Leave the job in order, when all answers have left. Sleeps meanwhile. */
int mpidata_loader_close(void);

#endif
