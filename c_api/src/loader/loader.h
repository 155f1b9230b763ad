/* A loader of the job: a rank that reads and prepares what the trainers ask it for; or an inference rank, which runs the model
 * for solver ranks that ask, or the learner, which runs the sampler for the scheduler: the same but for who asks. What Python calls
 * (mpidata/native/library.py). Not installed.
 *
 * One per process, and one thread that calls. A thread owned by the library makes MPI calls between open and close, hence
 * MPI_THREAD_MULTIPLE. Functions return the codes of mpidata.h. A loader that was given up, or whose scheduler
 * has died, ends. */
#ifndef MPIDATA_LOADER_H
#define MPIDATA_LOADER_H

#include <mpi.h>

#include "parcel/parcel_view.h"

/* Join the job, role: MPIDATA_ROLE_LOADER, _INFERENCE or _LEARNER. Collective over world; blocks without spinning. */
int mpidata_loader_open(MPI_Fint world, int role);

/* Tell the scheduler that it takes requests from now on. */
int mpidata_loader_begin(void);

/* Take the next request, whose memory is the caller's until mpidata_parcel_release. MPIDATA_SUCCESS; MPIDATA_ERR_AGAIN:
 * nothing within timeout_s; MPIDATA_END: this loader is to leave. Sleeps while it waits. timeout_s of 0, or less (then
 * an inference rank does not look for what has come since the last call), says that the caller
 * has work to do: a loader that the trainers need no more leaves only when it has none. */
int mpidata_loader_next(mpidata_taken *request, double timeout_s);

/* The same. A request that is small, and behind which none waits, comes to `memory`, of `room` bytes on a boundary of 8, as
 * mpidata_parcel_copy says: request->parcel is NULL then, and request->bytes as there. */
int mpidata_loader_next_into(mpidata_taken *request, char *memory, int64_t room, double timeout_s);

/* Answer a request: dataset, kind and number are those of the request, to whose sender it goes. parts: n_parts addresses,
 * sizes: bytes of each. They must not change, and stay where they are, until mpidata_loader_sent has given `ticket`. Those
 * of MPIDATA_PIECE_SMALL bytes in all are copied: then a ticket below 0 says that nobody asks for it. Does not block. */
int mpidata_loader_answer(const mpidata_taken *request, uint32_t status, int64_t n_parts, const void *const *parts,
                          const int64_t *sizes, int64_t ticket);

/* Of an inference rank: take what a trainer has published, if it is newer than this version, 0: none. Its memory is as that of
 * a request, number: its version. The first answer may be that nothing is newer: this version, without parts.
 * MPIDATA_ERR_AGAIN: it is asked for, and mpidata_loader_next returns MPIDATA_ERR_AGAIN when it has come. Does not block. */
int mpidata_loader_published(int64_t version, mpidata_taken *newer);

/* Tell the scheduler of an error that ends the job. */
int mpidata_loader_fail(const char *sentence);

/* The ticket of an answer that has left: MPIDATA_SUCCESS; MPIDATA_ERR_AGAIN: of no more. Does not block. */
int mpidata_loader_sent(int64_t *ticket);

/* What this loader does next may take long, as the start of a program may: loaders.start_timeout_s counts; or not. */
void mpidata_loader_starts(int yes);

/* After MPIDATA_END of mpidata_loader_next: MPIDATA_END: leave the job. MPIDATA_SUCCESS: the trainers need this loader no more,
 * but it could not end before the world does, so it waits for requests as a spare one. Sleeps until all answers have left. */
int mpidata_loader_rest(void);

/* Leave the job in order, when all answers have left. Sleeps meanwhile. */
int mpidata_loader_close(void);

#endif
