/* What the receive thread of a trainer and its callers share of loaders: requests that are to be sent, parcels that have
 * come, by the dataset that they are for, and which loaders have joined and were lost. Under the trainer's lock. */
#ifndef MPIDATA_PARCEL_QUEUE_H
#define MPIDATA_PARCEL_QUEUE_H

#include "base/lock.h"
#include "parcel/sending.h"
#include "python/structures.h"

/* at: of a lost one, what it worked on; "" where that is not known. */
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
    mpidata_loader_news *news; /* since the job began */
    int64_t n_news, allocated;
} mpidata_parcel_queue;

void mpidata_parcel_queue_close(mpidata_parcel_queue *queue);

/* Open a dataset, where it is not: from now on its parcels are kept. */
int mpidata_parcel_queue_open_dataset_locked(mpidata_parcel_queue *queue, uint32_t dataset);

/* Drop what has come for it, and what comes from now on. */
void mpidata_parcel_queue_close_dataset_locked(mpidata_parcel_queue *queue, uint32_t dataset);

/* Whether it was wanted; else it is freed. */
int mpidata_parcel_queue_add_locked(mpidata_parcel_queue *queue, mpidata_parcel *parcel);

/* The oldest of a dataset; NULL: there is none. */
mpidata_parcel *mpidata_parcel_queue_take_locked(mpidata_parcel_queue *queue, uint32_t dataset);

/* What the scheduler has told: once each, whatever it repeats. *is_new: it counts. */
int mpidata_parcel_queue_note_locked(mpidata_parcel_queue *queue, int loader, int what, const char *at, int *is_new);

/* Does it take requests? */
int mpidata_parcel_queue_asks_locked(const mpidata_parcel_queue *queue, int loader);

/* Does it answer those that it has? */
int mpidata_parcel_queue_lives_locked(const mpidata_parcel_queue *queue, int loader);

#endif
