#include "stream/parcel_queue.h"

#include <stdio.h>
#include <stdlib.h>

#include "containers/array.h"

void mpidata_parcel_queue_close(mpidata_parcel_queue *queue) {
    for (mpidata_parcel_dataset *dataset = queue->datasets, *next; dataset; dataset = next) {
        next = dataset->next;
        mpidata_parcels_free(&dataset->parcels);
        free(dataset);
    }
    mpidata_sendings_free(&queue->requests);
    free(queue->news);
    *queue = (mpidata_parcel_queue){.lock = queue->lock};
}

static mpidata_parcel_dataset *find_locked(const mpidata_parcel_queue *queue, uint32_t number) {
    MPIDATA_LOCKED(queue->lock);
    mpidata_parcel_dataset *dataset = queue->datasets;
    while (dataset && dataset->number != number) dataset = dataset->next;
    return dataset;
}

int mpidata_parcel_queue_open_dataset_locked(mpidata_parcel_queue *queue, uint32_t dataset) {
    MPIDATA_LOCKED(queue->lock);
    if (find_locked(queue, dataset)) return MPIDATA_SUCCESS;
    mpidata_parcel_dataset *opened = malloc(sizeof *opened);
    if (!opened) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a dataset.");
    *opened = (mpidata_parcel_dataset){.number = dataset, .next = queue->datasets};
    queue->datasets = opened;
    return MPIDATA_SUCCESS;
}

void mpidata_parcel_queue_close_dataset_locked(mpidata_parcel_queue *queue, uint32_t dataset) {
    MPIDATA_LOCKED(queue->lock);
    mpidata_parcel_dataset **at = &queue->datasets, *closed;
    while ((closed = *at) && closed->number != dataset) at = &closed->next;
    if (!closed) return;
    *at = closed->next;
    mpidata_parcels_free(&closed->parcels);
    free(closed);
}

int mpidata_parcel_queue_add_locked(mpidata_parcel_queue *queue, mpidata_parcel *parcel) {
    MPIDATA_LOCKED(queue->lock);
    mpidata_parcel_dataset *dataset = find_locked(queue, parcel->head.dataset);
    if (dataset)
        mpidata_parcels_append(&dataset->parcels, parcel);
    else
        mpidata_parcel_free(parcel);
    return dataset != NULL;
}

mpidata_parcel *mpidata_parcel_queue_take_locked(mpidata_parcel_queue *queue, uint32_t dataset) {
    MPIDATA_LOCKED(queue->lock);
    mpidata_parcel_dataset *found = find_locked(queue, dataset);
    return found ? mpidata_parcels_pop(&found->parcels) : NULL;
}

/* The last news of it; -1: none. */
static int last_news_locked(const mpidata_parcel_queue *queue, int loader) {
    MPIDATA_LOCKED(queue->lock);
    for (int64_t i = queue->n_news - 1; i >= 0; i--)
        if (queue->news[i].loader == loader) return queue->news[i].what;
    return -1;
}

int mpidata_parcel_queue_asks_locked(const mpidata_parcel_queue *queue, int loader) {
    MPIDATA_LOCKED(queue->lock);
    return last_news_locked(queue, loader) == MPIDATA_LOADER_JOINED;
}

int mpidata_parcel_queue_lives_locked(const mpidata_parcel_queue *queue, int loader) {
    MPIDATA_LOCKED(queue->lock);
    int last = last_news_locked(queue, loader);
    return last == MPIDATA_LOADER_JOINED || last == MPIDATA_LOADER_RETIRES;
}

/* The loss of a loader that does not serve is not news. */
static int is_news(int last, int what) {
    switch (what) {
    case MPIDATA_LOADER_JOINED: return last == -1 || last == MPIDATA_LOADER_RESTS;
    case MPIDATA_LOADER_RETIRES: return last == MPIDATA_LOADER_JOINED;
    case MPIDATA_LOADER_RESTS: return last == MPIDATA_LOADER_RETIRES;
    default: return last == MPIDATA_LOADER_JOINED || last == MPIDATA_LOADER_RETIRES;
    }
}

int mpidata_parcel_queue_note_locked(mpidata_parcel_queue *queue, int loader, int what, const char *at, int *is_new) {
    MPIDATA_LOCKED(queue->lock);
    *is_new = is_news(last_news_locked(queue, loader), what);
    if (!*is_new) return MPIDATA_SUCCESS;
    if (!mpidata_array_reserve(&queue->news, &queue->allocated, queue->n_news + 1, 16, sizeof *queue->news))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for news of loaders.");
    mpidata_loader_news *news = &queue->news[queue->n_news++];
    *news = (mpidata_loader_news){loader, what, ""};
    (void)snprintf(news->at, sizeof news->at, "%s", at);
    return MPIDATA_SUCCESS;
}
