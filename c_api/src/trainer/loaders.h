/* A trainer's requests to loaders, and their parcels; called by Python (mpidata/native/library.py). Not installed. Any
 * thread may call. */
#ifndef MPIDATA_TRAINER_LOADERS_H
#define MPIDATA_TRAINER_LOADERS_H

#include "parcel/parcel_view.h"

/* Send a request to a loader; MPIDATA_ERR_AGAIN: nothing is sent, because it takes no more, as mpidata_trainer_take reports.
 * Opens the dataset: its parcels are kept from now on. payload: bytes of it, copied. Does not block. */
int mpidata_trainer_request(int loader, uint32_t dataset, uint32_t kind, uint64_t number, const void *payload, int64_t bytes);

/* Take what comes next for a dataset: the next news of loaders, of which the caller has `seen` a number, or else a parcel,
 * whose memory the caller owns and may change until mpidata_parcel_release. MPIDATA_SUCCESS; MPIDATA_ERR_AGAIN: nothing
 * within timeout_s; MPIDATA_END: the job is over, or stopping; or an error that ended it. Sleeps while it waits. */
int mpidata_trainer_take(uint32_t dataset, int64_t seen, mpidata_taken *taken, double timeout_s);

/* Drop the parcels of a dataset, also those still to come. */
int mpidata_trainer_forget(uint32_t dataset);

#endif
