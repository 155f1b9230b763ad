/* State of loaders shared by the receive thread of a trainer and its callers: requests to be sent, received parcels by
 * dataset, and which loaders have joined and were lost. Under the trainer's lock. */
#ifndef MPIDATA_PARCEL_QUEUE_H
#define MPIDATA_PARCEL_QUEUE_H

#include "base/lock.h"
#include "parcel/sending.h"
#include "python/structures.h"

/* at: for a lost one, what it was reading; "": unknown. */
typedef struct {
    int loader, what;
    char at[MPIDATA_ITEM_MAX];
} mpidata_loader_news;

typedef struct mpidata_parcel_dataset {
    uint32_t number;
    mpidata_parcel_list parcels;
    struct mpidata_parcel_dataset *next;
} mpidata_parcel_dataset;

typedef struct {
    const mpidata_lock *lock; /* the trainer's */
    mpidata_parcel_dataset *datasets; /* open ones */
    mpidata_sending_list requests;
    mpidata_loader_news *news; /* since the start of the job */
    int64_t n_news, allocated;
} mpidata_parcel_queue;

void mpidata_parcel_queue_close(mpidata_parcel_queue *queue);

/* Open a dataset, unless it is open: from now on its parcels are kept. */
int mpidata_parcel_queue_open_dataset_locked(mpidata_parcel_queue *queue, uint32_t dataset);

/* Drop its parcels, also those that come from now on. */
void mpidata_parcel_queue_close_dataset_locked(mpidata_parcel_queue *queue, uint32_t dataset);

/* Returns whether it was needed; else it is freed. */
int mpidata_parcel_queue_add_locked(mpidata_parcel_queue *queue, mpidata_parcel *parcel);

/* The oldest of a dataset; NULL: there is none. */
mpidata_parcel *mpidata_parcel_queue_take_locked(mpidata_parcel_queue *queue, uint32_t dataset);

/* Note news of the scheduler, which may repeat them. *is_new: whether they are new. */
int mpidata_parcel_queue_note_locked(mpidata_parcel_queue *queue, int loader, int what, const char *at, int *is_new);

/* Whether it takes requests. */
int mpidata_parcel_queue_asks_locked(const mpidata_parcel_queue *queue, int loader);

/* Whether it answers pending requests. */
int mpidata_parcel_queue_lives_locked(const mpidata_parcel_queue *queue, int loader);

#endif
