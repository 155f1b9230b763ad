/* Structures that trainers and loaders exchange with Python; constants.c passes their layout to Python. */
#ifndef MPIDATA_STRUCTURES_H
#define MPIDATA_STRUCTURES_H

#include <stdint.h>

#include "plan_text/plan_text.h"
#include "wire/statistics.h"

/* Where a trainer holds samples. Those of a snapshot are numbered in this order. */
enum {
    MPIDATA_PLACE_BUFFER = 0, /* in the policy's order: fifo oldest first; reservoir those never drawn first */
    MPIDATA_PLACE_WAITING,    /* for room in the buffer, oldest first */
    MPIDATA_PLACE_RETIRED,    /* drawn last, kept to be repeated in the tail */
    MPIDATA_PLACE_VALIDATION,
    MPIDATA_PLACES,
    MPIDATA_PLACE_NONE = MPIDATA_PLACES /* steps of windows that are restored next */
};

typedef struct {
    int64_t number;                /* of the checkpoint */
    int64_t batch;                 /* batches drawn */
    int64_t batches_of_all;        /* by all trainers in total, including earlier starts of the run */
    int64_t count[4];              /* samples in each place */
    int64_t steps;                 /* in total: one per sample, or those of windows, each once */
    int64_t unseen;                /* number of the first samples of the buffer that were never drawn (reservoir) */
    int64_t next_retired;          /* next place to use among the retired */
    int64_t capacity;              /* of the buffer, including relief */
    int64_t added;                 /* samples that have entered the buffer since the start */
    uint64_t random[4];            /* state of the generator of draws */
    int64_t ledger_words;          /* length of `bits` of mpidata_trainer_snapshot_ledger */
    mpidata_statistics statistics;
} mpidata_snapshot;

typedef struct {
    int64_t queued, written, skipped; /* samples so far; written: released, or abandoned by stop */
    double slowed_s;                  /* how long the intake was closed because of the record */
} mpidata_record_figures;

/* News of a loader. */
enum {
    MPIDATA_LOADER_LOST,    /* it no longer answers */
    MPIDATA_LOADER_JOINED,  /* it takes requests */
    MPIDATA_LOADER_RETIRES, /* it takes no more requests, but answers pending ones */
    MPIDATA_LOADER_RESTS    /* it has answered them; it may join again */
};

typedef struct {
    struct mpidata_parcel *parcel; /* NULL: this is news of a loader */
    int32_t peer;           /* the loader that sends it, or that the news is about; for a loader the trainer that asks */
    int32_t news;           /* MPIDATA_LOADER_... */
    uint32_t dataset, kind, status;
    uint32_t more; /* requests wait behind this one */
    uint64_t number;
    int64_t n_parts;
    const int64_t *offsets, *sizes; /* of its parts in memory, n_parts each */
    char *memory;
    int64_t bytes;
    char at[MPIDATA_ITEM_MAX]; /* of a lost loader: what it was reading */
} mpidata_taken;

#endif
