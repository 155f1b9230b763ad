#include "trainer/loaders.h"

#include <string.h>

#include "stream/state.h"

int mpidata_trainer_request(int loader, uint32_t dataset, uint32_t kind, uint64_t number, const void *payload, int64_t bytes) {
    mpidata_trainer *trainer;
    mpidata_sending *request;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    if (bytes < 0 || (bytes && !payload)) return mpidata_error(MPIDATA_ERR_ARGUMENT, "The payload of a request is NULL.");
    const mpidata_parcel_head head = {
        .magic = MPIDATA_PARCEL_MAGIC, .dataset = dataset, .kind = kind, .number = number, .n_parts = 1};
    MPIDATA_TRY(mpidata_sending_new(&head, &bytes, &payload, 1, &request));
    request->to = loader;
    mpidata_lock_take(&trainer->lock);
    int status = mpidata_parcel_queue_open_dataset_locked(&trainer->parcels, dataset);
    if (!status && !mpidata_parcel_queue_asks_locked(&trainer->parcels, loader)) status = MPIDATA_ERR_AGAIN;
    if (!status) {
        mpidata_sendings_append(&trainer->parcels.requests, request);
        mpidata_trainer_wake_locked(trainer);
    }
    mpidata_lock_give(&trainer->lock);
    if (status) mpidata_sending_free(request);
    return status;
}

/* MPIDATA_ERR_AGAIN: there is nothing. */
static int take_locked(mpidata_trainer *trainer, uint32_t dataset, int64_t seen, mpidata_taken *taken) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_parcel_queue *queue = &trainer->parcels;
    if (seen < queue->n_news) {
        const mpidata_loader_news *news = &queue->news[seen];
        *taken = (mpidata_taken){.peer = news->loader, .news = news->what};
        memcpy(taken->at, news->at, sizeof taken->at);
        return MPIDATA_SUCCESS;
    }
    mpidata_parcel *parcel = mpidata_parcel_queue_take_locked(queue, dataset);
    if (parcel) {
        *taken = mpidata_taken_of(parcel);
        return MPIDATA_SUCCESS;
    }
    if (trainer->error) return mpidata_error(trainer->error, "%s", trainer->error_text);
    return mpidata_stopping(&trainer->phase) ? MPIDATA_END : MPIDATA_ERR_AGAIN;
}

int mpidata_trainer_take(uint32_t dataset, int64_t seen, mpidata_taken *taken, double timeout_s) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    if (seen < 0) return mpidata_error(MPIDATA_ERR_ARGUMENT, "The number of news is negative.");
    double deadline = mpidata_trainer_deadline(timeout_s);
    mpidata_lock_take(&trainer->lock);
    int status = take_locked(trainer, dataset, seen, taken);
    while (status == MPIDATA_ERR_AGAIN && mpidata_trainer_wait_locked(trainer, deadline))
        status = take_locked(trainer, dataset, seen, taken);
    mpidata_lock_give(&trainer->lock);
    return status;
}

int mpidata_trainer_forget(uint32_t dataset) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(mpidata_the_trainer(&trainer));
    mpidata_lock_take(&trainer->lock);
    mpidata_parcel_queue_close_dataset_locked(&trainer->parcels, dataset);
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}
